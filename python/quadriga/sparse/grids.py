# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/grids.py: Laplacians of boxes of points.
"""Model problems on grids."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..arguments import whole
from ..errors import InvalidArgument, InvalidType
from ..linalg.arrays import check_type, core_type
from .matrices import Csr, need_scipy
from .row_blocks import RowBlocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array
else:
    from ..typing import SparseArray as csr_array  # SciPy is imported where it is needed

_MANY = 2**40


def poisson(
    shape: int | Sequence[int], points: int | None = None, dtype: npt.DTypeLike = float
) -> csr_array:
    """The negative Laplacian of a grid of points with zero boundary values.

    Parameters
    ----------
    shape : int or sequence of 1 to 3 ints
        Points along each dimension; the last varies fastest.
    points : {3, 5, 7, 9, 27}, optional
        Of the stencil: the nearest neighbours (3, 5 or 7, by the number of dimensions; the
        default), or all adjacent ones (9 or 27). The diagonal is `points` - 1, the other elements
        are -1.
    dtype : float32, float64, complex64 or complex128

    Returns
    -------
    scipy.sparse.csr_array
        Symmetric and positive definite, with sorted indices.

    Examples
    --------
    >>> from quadriga import sparse
    >>> sparse.poisson(3).toarray()
    array([[ 2., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  2.]])
    """
    need_scipy("poisson()")
    from scipy.sparse import csr_array

    box, stencil = _box(shape, points)
    found = _type(dtype)
    rows = box[0] * box[1] * box[2]
    elements = _core.laplacian_elements(*box, stencil)
    offsets = np.empty(rows + 1, np.int64)
    columns, values = np.empty(elements, np.int64), np.empty(elements, found)
    _fill(box, stencil, offsets, columns, values)
    index = np.int32 if max(rows, elements) < 2**31 else np.int64
    return csr_array(
        (values, columns.astype(index, copy=False), offsets.astype(index, copy=False)),
        shape=(rows, rows),
    )


def poisson_rows(
    shape: int | Sequence[int], points: int | None = None, dtype: npt.DTypeLike = float
) -> RowBlocks:
    """The matrix of `poisson` as a source, whose rows are computed when they are needed.

    Arguments are those of `poisson`. It needs no SciPy.

    Examples
    --------
    >>> from quadriga import sparse
    >>> rows = sparse.poisson_rows((100, 100, 100), 27)
    >>> rows.shape
    (1000000, 1000000)
    >>> solver = sparse.Solver(sparse.poisson_rows((20, 20)), M="jacobi")
    >>> solver.solve([1.0] * 400).reason
    'converged'
    """
    box, stencil = _box(shape, points)
    found = _type(dtype)
    rows = box[0] * box[1] * box[2]

    def read(first: int, last: int) -> Csr:
        offsets = np.empty(last - first + 1, np.int64)
        most = (last - first) * stencil
        columns, values = np.empty(most, np.int64), np.empty(most, found)
        _core.laplacian(
            *box, stencil, first, last, offsets.ctypes.data, columns.ctypes.data,
            values.ctypes.data, core_type(found),
        )  # fmt: skip
        return Csr((last - first, rows), offsets, columns[: offsets[-1]], values[: offsets[-1]])

    return RowBlocks(rows, read, found)


def _type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    found = np.dtype(dtype)
    check_type(found, "dtype")
    if found.char not in "fdFD":
        raise InvalidType(f"dtype is {found}; expected float32, float64, complex64 or complex128")
    return found


def _box(shape: int | Sequence[int], points: int | None) -> tuple[tuple[int, int, int], int]:
    """Sizes, the fastest first, and the stencil in three dimensions."""
    given = [shape] if isinstance(shape, (int, np.integer)) else list(shape)
    if not 1 <= len(given) <= 3:
        raise InvalidArgument(f"shape {shape!r}: expected 1 to 3 sizes")
    sizes = [whole("size of the grid", size, 1, _MANY) for size in given]
    near, all_around = 2 * len(sizes) + 1, 3 ** len(sizes)
    chosen = near if points is None else points
    if chosen not in (near, all_around):
        raise InvalidArgument(
            f"points {points!r}: expected {near} or {all_around} in {len(sizes)} dimensions"
        )
    x, y, z = [*reversed(sizes), 1, 1][:3]
    if x * y * z > _MANY:
        raise InvalidArgument(f"shape {shape!r}: expected at most {_MANY} points")
    return (x, y, z), 27 if chosen == all_around != near else 7


def _fill(
    box: tuple[int, int, int],
    stencil: int,
    offsets: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    values: npt.NDArray[Any],
) -> None:
    """Slabs of the grid, by threads: the elements before one are those of a smaller grid."""
    x, y, z = box
    rows = x * y * z
    lines = y * z if stencil == 7 or z > 1 else y
    workers = os.cpu_count() or 1
    slabs = z if z > 1 else 1
    cuts = sorted({slabs * i // (4 * workers) for i in range(4 * workers + 1)}) if lines else [0]
    plane = rows // slabs

    def fill(first: int, last: int) -> None:
        before = _elements_before(box, stencil, first)
        part = np.empty((last - first) * plane + 1, np.int64)
        _core.laplacian(
            *box, stencil, first * plane, last * plane, part.ctypes.data,
            columns[before:].ctypes.data, values[before:].ctypes.data, core_type(values.dtype),
        )  # fmt: skip
        offsets[first * plane : last * plane + 1] = part + before

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(fill, cuts[:-1], cuts[1:]))


def _elements_before(box: tuple[int, int, int], stencil: int, slab: int) -> int:
    """In the slabs before one: those of a box of as many, and what leads from its last one on."""
    x, y, z = box
    if slab in (0, z):
        return 0 if slab == 0 else _core.laplacian_elements(x, y, z, stencil)
    between = (3 * x - 2) * (3 * y - 2) if stencil == 27 else x * y
    return _core.laplacian_elements(x, y, slab, stencil) + between
