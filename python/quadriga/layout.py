# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/layout.py: how an array lies in memory, in the engine's words, without a copy.
"""Arrays as the engine's tiles: columns of elements, a leading dimension apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import InvalidArgument

Array = npt.NDArray[Any]

_TYPES = {
    np.dtype(np.float32): _core.DType.float32,
    np.dtype(np.float64): _core.DType.float64,
    np.dtype(np.complex64): _core.DType.complex64,
    np.dtype(np.complex128): _core.DType.complex128,
}


@dataclass(frozen=True)
class Layout:
    """Where the elements of an array are, wherever its tile is.

    Attributes
    ----------
    rows, cols, ld : int
        As the engine counts: in elements, or in bytes for types it doesn't know.
    ld_axis : int or None
        The axis whose stride is the leading dimension; the other strides never change.
    turned : tuple of int
        Axes along which the array runs backwards through the tile.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    rows: int
    cols: int
    ld: int
    ld_axis: int | None
    turned: tuple[int, ...] = ()

    @property
    def core_dtype(self) -> _core.DType:
        return _TYPES.get(self.dtype, _core.DType.bytes)

    @property
    def core_sizes(self) -> tuple[int, int, int, _core.DType]:
        return self.rows, self.cols, self.ld, self.core_dtype

    def view(self, address: int, ld: int, writable: bool) -> Array:
        """The array at another address with another leading dimension."""
        unit = self.dtype.itemsize if self.dtype in _TYPES else 1
        strides = [abs(each) for each in self.strides] if self.turned else list(self.strides)
        if self.ld_axis is not None:
            strides[self.ld_axis] = ld * unit
        if prod(self.shape) == 0:
            empty = np.empty(self.shape, self.dtype)
            empty.flags.writeable = writable
            return empty
        span = ((self.cols - 1) * ld + self.rows) * unit
        memory = _core.memory(address, span, writable)
        tile: Array = np.ndarray(self.shape, self.dtype, memory, 0, tuple(strides))
        return np.flip(tile, self.turned) if self.turned else tile

    def start_of(self, array: Array) -> int:
        """Where the tile of an array begins: at its last element if it runs backwards."""
        address = address_of(array)
        for axis in self.turned:
            address += (self.shape[axis] - 1) * self.strides[axis]
        return address


def _flat(array: Array, scale: int) -> Layout:
    size = array.size * scale
    return Layout(array.shape, array.dtype, array.strides, size, 1, max(size, 1), None)


def _need_plain(dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise InvalidArgument(f"arrays of {dtype} hold Python objects, which can't move")


#: Layouts of arrays seen before: streams have many alike.
_known: dict[tuple[Any, ...], Layout] = {}
_MOST_KNOWN = 1024


def address_of(array: Array) -> int:
    """Where its memory begins; in a third of the time of `array.ctypes.data`."""
    address: int = array.__array_interface__["data"][0]
    return address


def layout_of(array: Array) -> Layout:
    """The layout of an array; raises if its memory can't be used as it is."""
    like = (array.shape, array.strides, array.dtype)
    known = _known.get(like)
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[like] = _layout_of(array)
    return known


def layout_on_device(shadow: Array) -> Layout:
    """The same of an array on a device, by one on the host that looks like it."""
    layout = layout_of(shadow)
    if layout.turned:
        raise InvalidArgument(
            f"an array on a device with strides {layout.strides} runs backwards; expected one that "
            "doesn't, such as its copy"
        )
    return layout


def _layout_of(array: Array) -> Layout:
    item = array.dtype.itemsize
    scale = 1 if array.dtype in _TYPES else item
    _need_plain(array.dtype)
    if array.size > 1 and min(array.strides) < 0:
        turned = tuple(axis for axis, each in enumerate(array.strides) if each < 0)
        return replace(_layout_of(np.flip(array, turned)), strides=array.strides, turned=turned)
    if array.size <= 1 or array.flags.c_contiguous or array.flags.f_contiguous:
        if array.ndim == 2 and array.size > 1:
            return _matrix(array, scale)
        return _flat(array, scale)
    if array.ndim == 1 and array.strides[0] > item and array.strides[0] % item == 0:
        ld = array.strides[0] // item * scale
        return Layout(array.shape, array.dtype, array.strides, scale, array.size, ld, 0)
    if array.ndim == 2 and item in array.strides:
        layout = _matrix(array, scale)
        if layout.ld >= layout.rows and array.strides[layout.ld_axis or 0] % item == 0:
            return layout
    raise InvalidArgument(
        f"an array of shape {array.shape} with strides {array.strides} can't be used in place: "
        "expected contiguous rows or columns; or pass numpy.ascontiguousarray(a) and keep it"
    )


def _matrix(array: Array, scale: int) -> Layout:
    """Two dimensions, one of them contiguous; the other one's stride is the leading dimension."""
    item = array.dtype.itemsize
    by_columns = array.flags.f_contiguous or (
        not array.flags.c_contiguous and array.strides[0] == item
    )
    inner, outer = (0, 1) if by_columns else (1, 0)
    rows, cols = array.shape[inner] * scale, array.shape[outer]
    # A single column may have any stride.
    ld = array.strides[outer] // item * scale if cols > 1 else rows
    return Layout(array.shape, array.dtype, array.strides, rows, cols, ld, outer)


def layout_of_new(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Layout:
    """The layout of a tile that has no array: rows one after the other."""
    kind = np.dtype(dtype)
    _need_plain(kind)
    scale = 1 if kind in _TYPES else kind.itemsize
    strides = [kind.itemsize] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    size = prod(shape) * scale
    return Layout(shape, kind, tuple(strides), size, 1, max(size, 1), None)
