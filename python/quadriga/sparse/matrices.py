# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/matrices.py: what callers give as sparse matrices, by compressed rows.
"""Inputs: any of SciPy's formats, dense arrays and files become three arrays."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from .. import _core, mapped
from ..errors import InvalidArgument, InvalidType, IoError, Unavailable
from ..linalg.arrays import check_type, core_type
from ..ready import ready
from ..registered import settle
from .market import Triplets, read_market

Array = npt.NDArray[Any]
DType = np.dtype[Any]


def need_scipy(why: str) -> None:
    """Refuses what needs SciPy where it isn't installed."""
    try:
        import scipy.sparse.linalg  # noqa: F401
    except ImportError as error:
        raise Unavailable(f"{why} needs SciPy, which is not installed: {error}") from error


@dataclass(frozen=True)
class Csr:
    """A matrix by compressed rows."""

    shape: tuple[int, int]
    offsets: Array
    columns: Array
    values: Array

    @property
    def dtype(self) -> DType:
        """Of the values."""
        found: DType = self.values.dtype
        return found

    def cast(self, dtype: DType) -> Csr:
        """The same elements in another type."""
        return replace(self, values=np.ascontiguousarray(self.values, dtype))

    def diagonal(self, first: int = 0) -> Array:
        """Elements (i, first + i) of all rows i; duplicates are summed."""
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.offsets))
        on = rows + first == self.columns[: rows.size]
        found = np.zeros(self.shape[0], self.dtype)
        np.add.at(found, rows[on], self.values[: rows.size][on])
        return found

    def core(self) -> _core.CsrView:
        """As the extension module takes it; the arrays must outlive it."""
        return _core.CsrView(
            *self.shape,
            self.columns.size,
            self.offsets.ctypes.data,
            self.columns.ctypes.data,
            self.values.ctypes.data,
            self.columns.itemsize,
            core_type(self.values.dtype),
        )


def is_matrix(value: Any) -> bool:
    """Whether it has elements, other than a function or an operator."""
    return (
        hasattr(value, "tocsr")
        or hasattr(value, "crow_indices")
        or isinstance(value, (str, os.PathLike, np.ndarray, list, tuple))
        or (hasattr(value, "__array__") and not hasattr(value, "matvec"))
    )


def on_host(value: Any) -> Any:
    """What an array of CuPy or a tensor of PyTorch holds, in an array of NumPy; others as given,
    mapped ones watched, once tasks have written it.
    """
    if hasattr(value, "tocsr"):
        raise InvalidType(
            f"vectors are arrays; got a sparse {type(value).__name__}, expected its toarray()"
        )
    if _is_torch(value):
        return ready(value.detach()).cpu().numpy()
    if _is_cupy(value):
        if hasattr(value, "__cuda_array_interface__"):  # else nothing of it can be registered
            ready(value)
        return value.get()
    return ready(value)


def _is_torch(value: Any) -> bool:
    return hasattr(value, "detach") and hasattr(value, "layout") and hasattr(value, "cpu")


def _is_cupy(value: Any) -> bool:
    """Also of its sparse matrices; `get` copies to the host."""
    return type(value).__module__.partition(".")[0] in ("cupy", "cupyx") and hasattr(value, "get")


def common_type(*types: DType) -> DType:
    """NumPy's common type; float64 if that holds no fractions."""
    found: DType = np.result_type(*types)
    return found if found.char in "fdFD" else np.dtype(float)


@mapped.checks()
def as_csr(value: Any, dtype: DType | None = None) -> Csr:
    """A square matrix in one of the four types; None: that of its values, if it is one of them."""
    found = any_csr(value)
    rows, cols = found.shape
    if rows != cols:
        raise InvalidArgument(f"expected a square matrix, but A has shape {(rows, cols)}")
    check_type(found.dtype, "A")
    wanted = common_type(found.dtype) if dtype is None else dtype
    for array in (found.offsets, found.columns, found.values):
        settle(array)
    values = np.ascontiguousarray(found.values, wanted)
    return Csr(found.shape, found.offsets, found.columns, values)


def any_csr(value: Any) -> Csr:
    """A matrix of any shape and type."""
    if isinstance(value, (str, os.PathLike)):
        value = read_matrix(value)
    if isinstance(value, Csr):
        return value
    if _is_torch(value) and str(value.layout) != "torch.strided":
        return _from_torch(value)
    if hasattr(value, "tocsr"):
        return _from_scipy(value.get() if _is_cupy(value) else value)
    return _from_dense(on_host(value))


def read_matrix(path: str | os.PathLike[str]) -> Any:
    """What a Matrix Market file, or an .npz file of SciPy's, holds."""
    if Path(path).suffix != ".npz":
        return _from_triplets(Path(path), read_market(path))
    need_scipy("an .npz file")
    from scipy.sparse import load_npz

    try:
        return load_npz(path)
    except OSError as error:
        raise IoError(f"can't read {Path(path)}: {error.strerror or error}") from error
    except (ValueError, KeyError, MemoryError, BadZipFile, EOFError, zlib.error) as error:
        raise InvalidArgument(f"{Path(path)} is not a sparse .npz file: {error}") from error


def _from_triplets(path: Path, found: Triplets) -> Csr:
    """By rows; the elements of a row as they were in the file."""
    if found.rows.size < found.shape[0]:
        raise InvalidArgument(
            f"{path}: {found.shape[0]} rows, but {found.rows.size} elements: some rows are empty"
        )
    order = np.argsort(found.rows, kind="stable")
    counts = np.bincount(found.rows, minlength=found.shape[0])
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return Csr(found.shape, offsets, found.columns[order], found.values[order])


def _from_scipy(matrix: Any) -> Csr:
    if matrix.ndim != 2:
        raise InvalidArgument(f"A is a sparse array of {matrix.ndim} dimensions; expected 2")
    for each in getattr(matrix, "__dict__", {}).values():
        ready(each)  # arrays of any format, which the conversion reads
    csr = matrix.tocsr()
    rows, cols = csr.shape
    offsets, columns = np.asarray(csr.indptr), np.asarray(csr.indices)
    if offsets.ndim != 1 or offsets.size != rows + 1:
        raise InvalidArgument(f"A.indptr has shape {offsets.shape}; expected ({rows + 1},)")
    values = np.asarray(csr.data)
    if columns.shape != values.shape or columns.ndim != 1:
        raise InvalidArgument(
            f"A.indices has shape {columns.shape} and A.data {values.shape}; expected one size"
        )
    for name, array in (("indptr", offsets), ("indices", columns)):
        if array.dtype.kind != "i":
            raise InvalidType(f"A.{name} is {array.dtype}; expected int32 or int64")
    index = np.dtype(np.int32 if offsets.dtype == columns.dtype == np.int32 else np.int64)
    return Csr(
        (rows, cols),
        np.ascontiguousarray(offsets, index),
        np.ascontiguousarray(columns, index),
        values,
    )


def _from_torch(tensor: Any) -> Csr:
    """One of PyTorch's layout CSR, or of another sparse one that becomes it."""
    if len(tensor.shape) != 2:
        raise InvalidArgument(f"A is a sparse tensor of {len(tensor.shape)} dimensions; expected 2")
    csr = tensor if str(tensor.layout) == "torch.sparse_csr" else tensor.to_sparse_csr()
    offsets, columns, values = (
        on_host(each) for each in (csr.crow_indices(), csr.col_indices(), csr.values())
    )
    rows, cols = (int(size) for size in csr.shape)
    return Csr(
        (rows, cols),
        np.ascontiguousarray(offsets),
        np.ascontiguousarray(columns, offsets.dtype),
        np.ascontiguousarray(values),
    )


def _from_dense(value: Any) -> Csr:
    array = np.asarray(value)
    if array.ndim != 2:
        raise InvalidArgument(f"A is an array of {array.ndim} dimensions; expected 2")
    check_type(array.dtype, "A")
    rows, columns = np.nonzero(array)
    counts = np.bincount(rows, minlength=array.shape[0])
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Csr(array.shape, offsets, columns.astype(np.int64), array[rows, columns])
