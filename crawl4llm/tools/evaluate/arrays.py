"""Short names for the arrays that the evaluation counts with."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Fingerprints: TypeAlias = NDArray[np.uint64]
"""What document keys are told apart by, see crawl4llm.tools.evaluate.documents."""
