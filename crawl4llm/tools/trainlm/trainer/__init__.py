"""The trainer: ``python -m trainer PLAN_DIR`` trains the models of a plan, and measures them on its targets.

It imports JAX, Equinox, Optax and NumPy, and nothing else of this project, so a machine needs this folder and the plan
alone. A plan is a folder: ``plan.json``; ``tokens.bin``, the tokens of each document once, as little-endian 16-bit
numbers; ``starts.npy``, where each document starts; for each run a list of documents; for each target a file of tokens.
Each training is a job, which writes ``results/JOB.json`` under another name and renames it. The same command does the
jobs that have no result. A job that was killed goes on from its last checkpoint, and on a CPU ends with the same bits.

- ``files``: what a plan is on disk
- ``model``, ``training``: a model, and its training; they import JAX
"""
