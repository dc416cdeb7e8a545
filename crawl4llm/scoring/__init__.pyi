from . import rating as rating
from .classifiers import Classifier as Classifier, read_classifiers as read_classifiers
from .fasttext_file import inspect_model as inspect_model
from .fasttext_scorer import (
    FastTextLanguages as FastTextLanguages,
    FastTextScorer as FastTextScorer,
    one_line as one_line,
)
from .languages import BundledLanguages as BundledLanguages, Languages as Languages
from .lines import Lines as Lines
from .linked import linked_share as linked_share
from .model_rules import (
    ModelRules as ModelRules,
    follow_rules as follow_rules,
    read_rules as read_rules,
    rules_path as rules_path,
)
from .passes import Arrays as Arrays, Pages as Pages, Question as Question, run_pass as run_pass
from .rating import (
    HtmlPage as HtmlPage,
    P as P,
    PageRater as PageRater,
    RatedText as RatedText,
    Raters as Raters,
    Rating as Rating,
    T as T,
    Task as Task,
    TextClassifier as TextClassifier,
    TextSet as TextSet,
    indegree as indegree,
    influence as influence,
    influence_task as influence_task,
    rate_text as rate_text,
    score_of as score_of,
    scores_by as scores_by,
)
from .score_cache import ScoreCache as ScoreCache, open_score_cache as open_score_cache
from .scorer import (
    SCORERS as SCORERS,
    Scorer as Scorer,
    ScoringOptions as ScoringOptions,
    gives_probabilities as gives_probabilities,
    load_scorer as load_scorer,
    load_scorer_class as load_scorer_class,
    parse_weights as parse_weights,
    scorer_name as scorer_name,
)
from .signatures import (
    BANDS as BANDS,
    SCHEME as SCHEME,
    SIGNATURE as SIGNATURE,
    are_alike as are_alike,
    require_library as require_library,
    signature_of as signature_of,
)
from .text import (
    EXTRACTORS as EXTRACTORS,
    count_tokens as count_tokens,
    extract_text as extract_text,
    load_extractor as load_extractor,
    title_of as title_of,
)
from .topic import (
    Mentions as Mentions,
    has_titles as has_titles,
    mentions_of as mentions_of,
    topic_pattern as topic_pattern,
)
from .workers import (
    PAGE_SECONDS as PAGE_SECONDS,
    PageTasks as PageTasks,
    PageWorkers as PageWorkers,
    open_workers as open_workers,
    rate_by_key as rate_by_key,
)
