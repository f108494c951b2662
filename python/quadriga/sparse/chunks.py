# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/chunks.py: long vectors on the host, by several threads.
"""Work on rows of arrays in chunks of a fixed size: results don't depend on how many threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_ROWS = 1 << 16
_MOST_THREADS = 8


class Chunks:
    """Chunks of so many rows; `close` ends the threads."""

    def __init__(self, rows: int) -> None:
        self._slices = [slice(at, min(at + _ROWS, rows)) for at in range(0, rows, _ROWS)]
        threads = min(len(self._slices), os.cpu_count() or 1, _MOST_THREADS)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def each(self, work: Callable[[slice], Any]) -> list[Any]:
        """What `work` returns for each chunk, in order; NumPy releases the GIL in it."""
        if self._pool is None:
            return [work(rows) for rows in self._slices]
        return list(self._pool.map(work, self._slices))

    def norms(self, columns: Array) -> npt.NDArray[np.float64]:
        """Of the columns of an array that is contiguous, row by row."""
        parts = columns.view(columns.real.dtype).reshape(*columns.shape, -1)
        # Where values aren't finite neither are norms, and the solve says so.
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.each(lambda rows: np.einsum("ijk,ijk->j", parts[rows], parts[rows]))
            total = np.sum(sums, axis=0) if sums else np.zeros(columns.shape[1])
        norms: npt.NDArray[np.float64] = np.sqrt(np.asarray(total, float))
        return norms

    def close(self) -> None:
        """No work may follow."""
        if self._pool is not None:
            self._pool.shutdown()
