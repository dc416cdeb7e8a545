"""Base: the words of the project and the ground under all other rooms.

- ``errors``, ``reasons``, ``stats``: exceptions, reasons for which documents are dropped or fail, and statistics.
- ``settings``: how a setting is declared, and checked; ``version``: that of the project.
- ``urls``, ``domains``: URLs and references, registrable domains.
- ``charsets``, ``html_bounds``, ``html_tree``: a page's charset, its tree of bounded size, its links.
- ``pages``: a page, its links, its HTTP exchanges, and the protocol of a corpus.
- ``files``, ``whole_files``, ``input_files``, ``within``: how files are written and read, and names kept in a folder.
- ``compression``, ``chunked``: compression, and content and transfer codings undone within bounds.
- ``known_sets``: files of known things, sorted and mapped into memory.
- ``processes``: processes that end with their parent, and work over many files in them.
- ``shard_tasks``, ``reductions``: such work in tasks, here or on other machines; and what joins it on disk.
- ``installed``: which packages are there, and how to get the others.
- ``run_folder``, ``crawl_log``, ``series``: the files of a run; ``output_dir``: the folder, claimed when one begins.
- ``terminal``, ``bars``, ``command_lines``: what people see; command lines that they can copy.
"""
