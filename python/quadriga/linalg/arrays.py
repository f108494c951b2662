# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/arrays.py: what callers give as matrices, as the library takes it.
"""Inputs: checked, promoted to one of the four types, described without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core, mapped
from ..errors import InvalidArgument, InvalidType
from ..foreign import DeviceArray, Kind, Registered, kind_of, seen
from ..ready import ready
from ..registered import settle
from ..residence import opened
from .sources import Source
from .wrapped import Stored, as_source

Array = npt.NDArray[Any]
Dense = Array | DeviceArray
Input = Dense | Source
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
    if isinstance(value, Registered):
        value = np.asarray(value) if value.known is None else value.known
    source = as_source(value)
    if source is not None:
        check_type(source.dtype, name)
        return source
    array: Any = seen(ready(value))
    if not isinstance(array, DeviceArray):
        array = np.asarray(array)
        settle(array)  # of an object that lends its memory by other means
    check_type(array.dtype, name)
    found: Dense = opened(array)
    return found


def kind_for(name: str, **values: Any) -> Kind:
    """The kind of a result, that of the arrays; sources, lists and numbers have none."""
    kinds = {key: kind_of(value) for key, value in values.items()}
    found = {key: kind for key, kind in kinds.items() if kind is not None}
    if len(set(found.values())) > 1:
        said = ", ".join(f"{key} is {kind}'s" for key, kind in found.items())
        raise InvalidArgument(f"{name}: {said}; pass out=, whose kind the result has")
    return next(iter(found.values()), Kind())


def as_output(value: Any, name: str) -> Dense:
    """An array that results are to go to, of any kind."""
    found = seen(value)
    if isinstance(found, Registered):
        raise InvalidArgument(
            f"{name} is a temporary, which has no array; expected an array, or Data of one, as "
            "engine.data(array)"
        )
    if not isinstance(found, (np.ndarray, DeviceArray)):
        raise InvalidArgument(f"{name} is a {type(value).__name__}; expected an array")
    mapped.watch(found)
    settle(found, writes=True)
    target: Dense = opened(found)
    return target


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
    if isinstance(value, DeviceArray):
        usable = value.dtype == dtype and value.is_contiguous
        return value if usable else value.converted(dtype)
    if value.dtype.isnative and value.dtype == dtype and _has_whole_strides(value):
        return value
    return value.astype(dtype.newbyteorder("="), order="K")


def _has_whole_strides(array: Array) -> bool:
    return array.flags.aligned and all(s % array.itemsize == 0 for s in array.strides)


def without_conjugate(value: Input, op: int) -> tuple[Input, int]:
    """No kernel conjugates without transposing: on a device, where nothing is gathered, a complex
    matrix is conjugated before its conjugate transpose is taken.
    """
    if op != 2 or not isinstance(value, DeviceArray) or value.dtype.char not in "FD":
        return value, op
    return value.conjugated(), 1


def by_columns(value: Input) -> Input:
    """Where a complex matrix on a device has its rows together and no kernel takes it so: a copy
    there, columns one after the other. Anything else as it is.
    """
    if not isinstance(value, DeviceArray) or value.ndim < 2 or value.dtype.char not in "FD":
        return value
    return (
        value
        if value.shape[0] <= 1 or value.strides[0] == value.itemsize
        else value.converted(value.dtype)
    )


def matrix_of(value: Input, device: int | None = None) -> _core.Matrix:
    """As the extension module takes it; the caller keeps `value` alive. Vectors are columns.

    `device`: the engine's, that holds a `DeviceArray`.
    """
    if isinstance(value, Source):
        return value.core()
    item = value.itemsize
    rows, cols = value.shape if value.ndim == 2 else (value.shape[0], 1)
    row_stride = value.strides[0] // item
    col_stride = value.strides[1] // item if value.ndim == 2 else max(rows, 1)
    address = value.address if isinstance(value, DeviceArray) else value.ctypes.data
    return _core.Matrix.view(
        address, rows, cols, row_stride, col_stride, core_type(value.dtype), device
    )


def writable(array: Dense, name: str) -> Dense:
    """Refuses an output that can't be written in place."""
    if isinstance(array, DeviceArray):
        if not array.writeable:
            raise InvalidArgument(f"{name} is read-only")
        if not array.is_contiguous:
            raise InvalidArgument(
                f"{name} lies on a device with strides {array.strides}: expected contiguous rows "
                "or columns"
            )
        return array
    if not array.flags.writeable:
        raise InvalidArgument(f"{name} is read-only")
    if not (array.dtype.isnative and _has_whole_strides(array)):
        raise InvalidArgument(f"{name} must be aligned and in the machine's byte order")
    return array


def to_overwrite(value: Input, dtype: DType, overwrite: bool) -> Dense:
    """An array of `dtype` that may be written: a copy, unless `value` may be overwritten."""
    if isinstance(value, Source):
        return np.asfortranarray(value[:, :], dtype=dtype)
    copied = in_type(value, dtype)
    if isinstance(value, DeviceArray):
        assert isinstance(copied, DeviceArray)
        may_write = copied is not value or (overwrite and value.writeable)
        return copied if may_write else value.converted(dtype)
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
    """SciPy's check of a whole array, of one that is stored when it is read; other sources are not
    looked at.
    """
    if isinstance(value, Stored):
        value.must_be_finite = wanted and value.dtype.char in "fdFD"
    if not wanted or isinstance(value, Source) or value.dtype.char not in "fdFD":
        return
    if isinstance(value, DeviceArray):
        if value.size and not value.all_finite():
            raise InvalidArgument("array must not contain infs or NaNs")
        return
    for block in _blocks(value):
        if not np.isfinite(block).all():
            raise InvalidArgument("array must not contain infs or NaNs")


def _subtractable(array: Array) -> Array:
    return array.astype(float) if array.dtype.kind in "bui" else array


def check_symmetric(value: Input, wanted: bool | float) -> None:
    """Refuses a matrix that isn't hermitian, within `wanted` times its largest element.

    True stands for 100 times the type's precision.
    """
    if wanted is False or (isinstance(value, Source) and value.hermitian):
        return
    if not wanted >= 0:
        raise InvalidArgument(f"check_symmetric is {wanted}; expected True, False or at least 0")
    eps = 2.0**-23 if value.dtype.char in "fF" else 2.0**-52
    relative = 100 * eps if wanted is True else float(wanted)
    if isinstance(value, DeviceArray):
        largest, far = value.asymmetry() if value.size else (0.0, 0.0)
        if not far <= relative * largest:
            raise InvalidArgument(
                f"the matrix isn't {'hermitian' if value.dtype.char in 'FD' else 'symmetric'}: "
                f"it differs from its transpose by up to {far}"
            )
        return
    largest, worst, where = _asymmetry_of(value)
    if worst > relative * largest:
        i, j = max(where), min(where)
        raise InvalidArgument(
            f"the matrix isn't {'hermitian' if value.dtype.kind == 'c' else 'symmetric'}: "
            f"element ({i}, {j}) is {value[i, j]} and ({j}, {i}) is {value[j, i]}"
        )


def _asymmetry_of(value: Array | Source) -> tuple[float, float, tuple[int, int]]:
    """The largest element, and where it is farthest from its conjugate transpose, by how much."""
    largest, worst, where = 0.0, 0.0, (0, 0)
    step = 1024
    for row in range(0, value.shape[0], step):
        for col in range(0, row + 1, step):
            here = _subtractable(value[row : row + step, col : col + step])
            there = _subtractable(value[col : col + step, row : row + step]).conj().T
            largest = max(largest, float(np.abs(here).max()), float(np.abs(there).max()))
            apart = np.abs(here - there)
            if float(np.fmax.reduce(apart, axis=None)) > worst:  # NaNs differ from nothing
                i, j = np.unravel_index(int(np.nanargmax(apart)), apart.shape)
                worst, where = float(apart[i, j]), (row + int(i), col + int(j))
    return largest, worst, where
