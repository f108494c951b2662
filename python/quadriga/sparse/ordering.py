# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/ordering.py: rows in an order in which neighbours stand close together.
"""Orders of rows and columns, undone in results."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .matrices import Csr, need_scipy

Array = npt.NDArray[Any]


class Ordering:
    """A permutation of rows and columns: place i of the new order is row `places[i]`."""

    def __init__(self, places: Array) -> None:
        self._places = places

    def forth(self, vectors: Array) -> Array:
        """A vector, or vectors by columns, in the new order."""
        found: Array = vectors[self._places]
        return found

    def back(self, vectors: Array, out: Array | None = None) -> Array:
        """The same in the old one."""
        found = np.empty_like(vectors) if out is None else out
        found[self._places] = vectors
        return found


def reverse_cuthill_mckee(matrix: Csr) -> tuple[Ordering, Csr]:
    """The ordering of a symmetric pattern that brings elements near to the diagonal.

    Cuthill and McKee, 1969; reversed as by George.
    """
    need_scipy("an ordering")
    from scipy.sparse import csgraph, csr_array

    given = csr_array((matrix.values, matrix.columns, matrix.offsets), shape=matrix.shape)
    given.check_format()
    places = csgraph.reverse_cuthill_mckee(given, symmetric_mode=True)
    # Rows in their new order, then columns by their new numbers; those of a row stay unsorted.
    rows = given[places]
    numbers = np.empty_like(places)
    numbers[places] = np.arange(places.size, dtype=places.dtype)
    offsets = rows.indptr.astype(matrix.offsets.dtype, copy=False)
    columns = numbers[rows.indices].astype(matrix.columns.dtype, copy=False)
    return Ordering(places), Csr(matrix.shape, offsets, columns, rows.data)
