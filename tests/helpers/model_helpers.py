"""fastText models that are damaged in ways of which their files tell nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import fasttext
import numpy as np


def patched(model: Path, to: Path, places: slice, weight: float) -> Path:
    """A copy of a model with some weights of its input matrix replaced."""
    data = bytearray(model.read_bytes())
    matrix = np.asarray(fasttext.load_model(str(model)).get_input_matrix(), dtype="<f4").tobytes()
    start = data.index(matrix)
    for place in range(len(matrix) // 4)[places]:
        struct.pack_into("<f", data, start + 4 * place, weight)
    to.write_bytes(data)
    return to
