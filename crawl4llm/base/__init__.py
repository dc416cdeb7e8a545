"""Base: vocabulary and foundations that all other rooms use.

- ``errors``, ``reasons``, ``stats``: exceptions, reasons for which documents are dropped or fail, and statistics.
- ``settings``: declarations and checks of settings; ``version``: the version of the project.
- ``urls``, ``domains``: URLs and references, registrable domains.
- ``charsets``, ``html_bounds``, ``html_tree``: a page's charset, its bounded tree, its links.
- ``pages``: a page, its links, its HTTP exchanges, and the protocol of a corpus.
- ``files``, ``whole_files``, ``input_files``, ``within``: writing and reading of files, and names kept within a folder.
- ``compression``, ``chunked``: compression, and content and transfer codings undone within bounds.
- ``sorted_file``, ``sorted_writer``, ``spread``: files of hashes with values or records, read by place; their sorting.
- ``processes``, ``pools``: processes that end with their parent, work in a child, and in a pool of them.
- ``jobs``, ``slurm``, ``reductions``: long work in jobs, here or elsewhere; reductions of their results on disk.
- ``installed``: commands that install missing packages.
- ``run_folder``, ``crawl_log``, ``series``: the files of a run; ``output_dir``: the folder, claimed when one begins.
- ``terminal``, ``bars``, ``command_lines``: output for people, and command lines that they can copy.
"""
