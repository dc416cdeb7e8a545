from . import cdxj as cdxj
from .archive import (
    OPEN_SUFFIX as OPEN_SUFFIX,
    Archive as Archive,
    ArchiveFormat as ArchiveFormat,
    ArchiveInfo as ArchiveInfo,
    ArchivePosition as ArchivePosition,
    NullArchive as NullArchive,
    SeriesPosition as SeriesPosition,
    host_name as host_name,
)
from .cdxj import (
    ABOUT as ABOUT,
    INDEX_NAME as INDEX_NAME,
    REVISIT_MIME as REVISIT_MIME,
    SIGNALS as SIGNALS,
    SITE as SITE,
    TEXT_INDEX_NAME as TEXT_INDEX_NAME,
    IndexLine as IndexLine,
    parse_entry as parse_entry,
    parse_index_line as parse_index_line,
)
from .exchanges import PURPOSE_FIELD as PURPOSE_FIELD
from .page_records import (
    Entry as Entry,
    Values as Values,
    digest as digest,
    index_mime as index_mime,
    is_utc_date as is_utc_date,
    one_line as one_line,
    record_bytes as record_bytes,
    timestamp as timestamp,
    urlkey as urlkey,
    utf8 as utf8,
)
from .payload import (
    all_known as all_known,
    decoded as decoded,
    entity as entity,
    html_of as html_of,
    is_html as is_html,
    may_be_html as may_be_html,
    may_unpack_to as may_unpack_to,
    media_type as media_type,
    wat_links as wat_links,
    wat_page as wat_page,
)
from .reader import (
    RecordReader as RecordReader,
    StoredRecord as StoredRecord,
    Stretch as Stretch,
    WarcReader as WarcReader,
    begins_like_archive as begins_like_archive,
    html_of_record as html_of_record,
    parse_stored as parse_stored,
    read_page as read_page,
    read_record as read_record,
    read_stored as read_stored,
    scan as scan,
)
from .records import (
    CONTENT_TYPE as CONTENT_TYPE,
    DATE as DATE,
    PAYLOAD_DIGEST as PAYLOAD_DIGEST,
    TARGET_URI as TARGET_URI,
    Fields as Fields,
    Frame as Frame,
    HttpHead as HttpHead,
    Name as Name,
    Opening as Opening,
    Record as Record,
    UnreadableFile as UnreadableFile,
    field_name as field_name,
)
from .writer import ArchiveWriter as ArchiveWriter, FileNames as FileNames
