"""Slurm's commands for one machine: ``sbatch`` runs the script that it is given, or the line behind
``--wrap``, once for each number of the array."""

from __future__ import annotations

import os
from pathlib import Path

_COMMANDS = {
    "sbatch": r"""
cd "$SLURM_STATE"
for script; do :; done
id=$(($(ls | grep -c '^script') + 1))
if [ "$2" = --wrap ]; then
    array=$1
    printf '#!/bin/sh\n%s\n' "$script" > "script$id"
else
    cp "$script" "script$id"
    array=$(sed -n 's/^#SBATCH \(--array=[0-9]*-[0-9]*\).*/\1/p' "$script")
fi
array=${array#--array=}
touch "queued$id"
(
    cd "$OLDPWD"
    export SLURM_NODELIST=here
    for task in $(seq "${array%-*}" "${array#*-}"); do
        export SLURM_ARRAY_TASK_ID=$task
        run=(bash "$SLURM_STATE/script$id")
        [ "$task" = "$(cat "$SLURM_STATE/kill" 2>/dev/null)" ] && run=(timeout --signal=KILL 0.01 "${run[@]}")
        "${run[@]}" > "$SLURM_STATE/out$id.$task" 2>&1 &
    done
    wait
    rm "$SLURM_STATE/queued$id" "$SLURM_STATE/kill"
) < /dev/null > /dev/null 2>&1 &
echo "Submitted batch job $id"
""",
    "squeue": '[ -e "$SLURM_STATE/queued${2#--jobs=}" ] && echo "${2#--jobs=} cpu crawl4llm R"',
    "srun": '[ "$1 $2 $3" = "-l -n 1" ] && shift 3 && exec "$@"',
    "scontrol": 'echo "$3"',
}


def fake_slurm(folder: Path) -> dict[str, str]:
    """Make the commands in a folder; returns the environment in which they are found.

    The number in the file ``kill`` is that of the task that is killed in the next array. ``script1`` is what the first
    ``sbatch`` was given, ``out1.0`` what its task 0 has printed.
    """
    (folder / "bin").mkdir(parents=True)
    for name, text in _COMMANDS.items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    return {"PATH": f"{folder}/bin:{os.environ['PATH']}", "SLURM_STATE": str(folder)}
