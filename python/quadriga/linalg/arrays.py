# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/arrays.py: what callers give as matrices, as the library takes it.
"""Inputs: checked, promoted to one of the four types, described without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import InvalidArgument, InvalidType
from .sources import Source, as_source

Array = npt.NDArray[Any]
Input = Array | Source
DType = np.dtype[Any]

# How SciPy ranks types: the highest decides, and complex64 with a double is complex128.
_RANKS = dict.fromkeys("?bBhHf", 1) | dict.fromkeys("iIlLqQd", 2) | {"F": 3, "D": 4}
_RANKED: dict[int, np.dtype[Any]] = {
    1: np.dtype("f"),
    2: np.dtype("d"),
    3: np.dtype("F"),
    4: np.dtype("D"),
}
_CORE = {
    "f": _core.DType.float32,
    "d": _core.DType.float64,
    "F": _core.DType.complex64,
    "D": _core.DType.complex128,
}
_BLOCK = 1 << 20  # elements looked at together in a check


def as_input(value: Any, name: str) -> Input:
    """A source, or an array of a type that is accepted."""
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidArgument("masked arrays are not supported")
    if hasattr(value, "tocsr"):
        raise InvalidArgument("sparse matrices are not supported; pass a.toarray()")
    source = as_source(value)
    if source is not None:
        check_type(source.dtype, name)
        return source
    array = np.asarray(value)
    check_type(array.dtype, name)
    return array


def check_type(dtype: DType, name: str) -> None:
    """Refuses element types that aren't among the four nor promoted to one of them."""
    if dtype.char not in _RANKS:
        raise InvalidType(
            f"{name} is {dtype}; accepted are float32, float64, complex64, complex128, "
            "and bool and integers, which are promoted"
        )


def lapack_type(*inputs: Input) -> DType:
    """The type that SciPy's wrappers of LAPACK compute in."""
    ranks = {_RANKS[each.dtype.char] for each in inputs}
    best = max(ranks)
    return _RANKED[4 if best == 3 and 2 in ranks else best]


def common_type(*inputs: Input) -> DType:
    """NumPy's common type; float64 if that holds no fractions."""
    found: Any = np.result_type(*(each.dtype for each in inputs))
    wanted: DType = np.dtype(found if found.char in _CORE else float)
    return wanted


def core_type(dtype: DType) -> _core.DType:
    """One of the four types, as the extension module calls it."""
    return _CORE[dtype.char]


def in_type(value: Input, dtype: DType) -> Input:
    """The same in another type, native and with whole strides; the same object if it is so."""
    if isinstance(value, Source):
        return value.astype(dtype)
    if value.dtype.isnative and value.dtype == dtype and _has_whole_strides(value):
        return value
    return value.astype(dtype.newbyteorder("="), order="K")


def _has_whole_strides(array: Array) -> bool:
    return array.flags.aligned and all(s % array.itemsize == 0 for s in array.strides)


def matrix_of(value: Input) -> _core.Matrix:
    """As the extension module takes it; the caller keeps `value` alive. Vectors are columns."""
    if isinstance(value, Source):
        return value.core()
    item = value.itemsize
    rows, cols = value.shape if value.ndim == 2 else (value.shape[0], 1)
    row_stride = value.strides[0] // item
    col_stride = value.strides[1] // item if value.ndim == 2 else max(rows, 1)
    return _core.Matrix.view(
        value.ctypes.data, rows, cols, row_stride, col_stride, core_type(value.dtype)
    )


def writable(array: Array, name: str) -> Array:
    """Refuses an output that can't be written in place."""
    if not array.flags.writeable:
        raise InvalidArgument(f"{name} is read-only")
    if not (array.dtype.isnative and _has_whole_strides(array)):
        raise InvalidArgument(f"{name} must be aligned and in the machine's byte order")
    return array


def share_memory(one: Input | None, other: Input | None) -> bool:
    """Whether two inputs may have bytes in common; sources have none."""
    both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return both and np.may_share_memory(one, other)


def to_overwrite(value: Input, given: Any, dtype: DType, overwrite: bool) -> Array:
    """An array of `dtype` that may be written: a copy, unless `given` may be overwritten."""
    if isinstance(value, Source):
        return np.asfortranarray(value[:, :], dtype=dtype)
    copied = in_type(value, dtype)
    assert isinstance(copied, np.ndarray)
    if overwrite and not copied.flags.writeable:
        overwrite = False
    if overwrite or (copied is not value and not np.may_share_memory(copied, value)):
        return copied
    return np.array(copied, order="F")


def _blocks(array: Array) -> Iterator[Array]:
    """Parts of an array along its longer stride, about a million elements each."""
    if array.ndim < 2 or array.size <= _BLOCK:
        flat = array.reshape(-1) if array.ndim != 1 else array
        for begin in range(0, flat.size, _BLOCK):
            yield flat[begin : begin + _BLOCK]
        return
    by_rows = abs(array.strides[0]) >= abs(array.strides[1])
    lines = array if by_rows else array.T
    step = max(1, _BLOCK // lines.shape[1])
    for begin in range(0, lines.shape[0], step):
        yield lines[begin : begin + step]


def check_finite(value: Input, wanted: bool) -> None:
    """SciPy's check of a whole array; sources are not looked at."""
    if not wanted or isinstance(value, Source) or value.dtype.char not in "fdFD":
        return
    for block in _blocks(value):
        if not np.isfinite(block).all():
            raise InvalidArgument("array must not contain infs or NaNs")


def _subtractable(array: Array) -> Array:
    return array.astype(float) if array.dtype.kind in "bui" else array


def check_symmetric(value: Input, wanted: bool | float) -> None:
    """Refuses a matrix that isn't hermitian, within `wanted` times its largest element.

    True stands for 100 roundings.
    """
    if wanted is False or isinstance(value, Source):
        return
    if not wanted >= 0:
        raise InvalidArgument(f"check_symmetric is {wanted}; expected True, False or at least 0")
    eps = 2.0**-23 if value.dtype.char in "fF" else 2.0**-52
    relative = 100 * eps if wanted is True else float(wanted)
    largest = max((float(np.abs(block).max()) for block in _blocks(value) if block.size), default=0)
    step = 1024
    for row in range(0, value.shape[0], step):
        for col in range(0, row + 1, step):
            here = _subtractable(value[row : row + step, col : col + step])
            there = _subtractable(value[col : col + step, row : row + step]).conj().T
            far = np.abs(here - there) > relative * largest
            if far.any():
                i, j = (int(k) for k in np.argwhere(far)[0])
                raise InvalidArgument(
                    f"the matrix isn't {'hermitian' if np.iscomplexobj(value) else 'symmetric'}: "
                    f"element ({row + i}, {col + j}) is {here[i, j]} and "
                    f"({col + j}, {row + i}) is {value[col + j, row + i]}"
                )
