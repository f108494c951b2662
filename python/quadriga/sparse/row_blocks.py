# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/row_blocks.py: matrices whose rows are read when they are needed.
"""Sources of rows: a matrix that is never whole in the host's memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core, mapped
from ..arguments import whole
from ..errors import Error, InvalidArgument, InvalidType, IoError
from ..failures import raise_kept
from ..linalg.arrays import check_type, core_type
from .matrices import Csr, any_csr, as_csr, common_type, is_matrix

Array = npt.NDArray[Any]
_MOST = 2**62
#: As many rows at once as are read where their number is free.
_ROWS = 1 << 16
_FILES = ("indptr", "indices", "data")


class RowBlocks:
    """A square matrix whose rows a function reads when they are needed.

    A solver reads each row three times: to count elements, to find what parts need of each other,
    and to store it. At most one part's rows are in memory at once; ``Solver(..., spill=FILE)``
    keeps what is stored in a file. What needs the whole matrix refuses it: an `order`, mixed
    precision, and an M by aggregation.

    Parameters
    ----------
    n : int
        Rows, and columns.
    read : callable
        ``read(first, last)`` returns the rows from `first` on and before `last`, the same ones each
        time: a sparse array, or what else is accepted as a matrix, of shape ``(last - first, n)``.
        One thread calls it at a time, not always the caller's.
    dtype : float32, float64, complex64 or complex128
        Of the matrix; what is read is converted to it.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import sparse
    >>> a = sparse.poisson((30, 20))
    >>> rows = sparse.RowBlocks(600, lambda first, last: a[first:last])
    >>> x, info = sparse.cg(rows, np.ones(600), M="jacobi")
    >>> bool((x == sparse.cg(a, np.ones(600), M="jacobi")[0]).all())
    True
    """

    def __init__(
        self, n: int, read: Callable[[int, int], Any], dtype: npt.DTypeLike = float
    ) -> None:
        size = whole("n", n, 0, _MOST)
        if not callable(read):
            raise InvalidType(f"read is {read!r}; expected a function of the first and last row")
        found = np.dtype(dtype)
        check_type(found, "dtype")
        #: Of the matrix, (n, n).
        self.shape = (size, size)
        #: Of its elements.
        self.dtype = common_type(found)
        self._given = read

    def cast(self, dtype: np.dtype[Any]) -> RowBlocks:
        """The same elements in another type."""
        return RowBlocks(self.shape[0], self._given, dtype)

    def rows(self, first: int, last: int) -> Csr:
        """Those from `first` on and before `last`.

        Raises
        ------
        InvalidArgument
            If they have another shape, or are complex and the matrix isn't.
        """
        found = any_csr(self._given(first, last))
        if found.shape != (last - first, self.shape[0]):
            raise InvalidArgument(
                f"read({first}, {last}) returned rows of shape {found.shape}; expected "
                f"{(last - first, self.shape[0])}"
            )
        if found.dtype.kind == "c" and self.dtype.kind != "c":
            raise InvalidType(
                f"read({first}, {last}) returned {found.dtype}, and the matrix is {self.dtype}; "
                "expected RowBlocks(..., dtype=complex)"
            )
        return replace(found, values=np.ascontiguousarray(found.values, self.dtype))

    def diagonal(self) -> Array:
        """Its elements on the diagonal; duplicates are summed."""
        n = self.shape[0]
        found = np.zeros(n, self.dtype)
        for first in range(0, n, _ROWS):
            last = min(first + _ROWS, n)
            found[first:last] = self.rows(first, last).diagonal(first)
        return found

    def __repr__(self) -> str:
        return f"<RowBlocks of order {self.shape[0]}, {self.dtype}>"


def has_rows(value: Any) -> bool:
    """Whether it is a matrix, or a source of one's rows."""
    return isinstance(value, RowBlocks) or is_matrix(value)


def as_rows(value: Any, dtype: np.dtype[Any] | None = None) -> Csr | RowBlocks:
    """A square matrix in one of the four types, or its source: of RowBlocks and of folders."""
    if isinstance(value, (str, os.PathLike)) and Path(value).is_dir():
        value = from_folder(value)
    if isinstance(value, RowBlocks):
        return value if dtype is None else value.cast(dtype)
    return as_csr(value, dtype)


def from_folder(path: str | os.PathLike[str]) -> RowBlocks:
    """A matrix in a folder's files ``indptr.npy``, ``indices.npy`` and ``data.npy``, mapped.

    They hold the arrays of a square `scipy.sparse.csr_array`, as ``numpy.save`` writes them.

    Raises
    ------
    IoError
        If a file is missing or can't be read.
    InvalidArgument
        If the arrays are none of a sparse matrix.
    """
    offsets, columns, values = (_mapped(Path(path) / f"{name}.npy") for name in _FILES)
    for name, array in zip(_FILES, (offsets, columns, values), strict=True):
        if array.ndim != 1 or (name != "data" and array.dtype.kind != "i"):
            kind = "numbers" if name == "data" else "int32 or int64"
            raise InvalidArgument(
                f"{Path(path) / name}.npy has shape {array.shape} of {array.dtype}; expected one "
                f"dimension of {kind}"
            )
    if offsets.size == 0 or columns.size != values.size:
        raise InvalidArgument(
            f"{path}: {offsets.size} offsets, {columns.size} indices and {values.size} values; "
            "expected n + 1 offsets and as many indices as values"
        )
    n = offsets.size - 1
    starts = np.asarray(offsets, np.int64)
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > columns.size:
        raise InvalidArgument(
            f"{Path(path) / 'indptr.npy'}: expected offsets that ascend from 0 to at most "
            f"{columns.size}"
        )

    def read(first: int, last: int) -> Csr:
        begin, end = int(starts[first]), int(starts[last])
        return Csr(
            (last - first, n),
            starts[first : last + 1] - begin,
            np.asarray(columns[begin:end], np.int64),
            np.asarray(values[begin:end]),
        )

    return RowBlocks(n, read, values.dtype)


def _mapped(path: Path) -> Array:
    try:
        found: Array = mapped.watch(np.load(path, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        raise IoError(f"can't read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise InvalidArgument(f"{path} is not an array that can be mapped: {error}") from error
    return found


class _Reader:
    """Rows for the extension; keeps what it read last, and what the user's function raised."""

    def __init__(self, blocks: RowBlocks) -> None:
        self._blocks = blocks
        self._last: Csr | None = None
        self._files = mapped.files_here()  # of the call that reads rows, in which threads ever
        self.failure: BaseException | None = None
        self.is_left = False

    def __call__(self, first: int, last: int) -> _core.CsrView:
        if self.is_left:
            raise InterruptedError("the caller has left: nobody needs these rows")
        try:
            self._last = None  # Two blocks at once are one too many.
            with mapped.given_to(self._files):
                self._last = self._blocks.rows(first, last)
        except BaseException as error:
            self.failure = error
            raise
        return self._last.core()


@contextmanager
def readable(matrix: Csr | RowBlocks) -> Iterator[_core.CsrView | _core.RowSource]:
    """A matrix as the extension takes it; what reading its rows raised is raised here."""
    if isinstance(matrix, Csr):
        yield matrix.core()
        return
    reader = _Reader(matrix)
    try:
        yield _core.RowSource(matrix.shape[0], core_type(matrix.dtype), reader)
    except Error:
        if reader.failure is not None:
            raise_kept(reader.failure)
        raise
    except BaseException:  # Ctrl-C: another thread may be about to read on.
        reader.is_left = True
        raise
