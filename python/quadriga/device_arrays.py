# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/device_arrays.py: memory of a GPU as arrays of CuPy or PyTorch, on our stream.
"""What callables that compute on a GPU get: arrays over the operands' memory, without copies.

The library's current stream is the task's while the callable runs, so that what it computes comes
after what the task waits for, and before what waits for the task. Nothing here waits for a device.
"""

from __future__ import annotations

import importlib
import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any

import numpy as np

from . import _core
from .errors import InvalidArgument, Unavailable
from .layout import Layout


def strides_at(layout: Layout, ld: int) -> tuple[int, ...] | None:
    """Bytes between elements where the tile has this leading dimension; None: C order."""
    if prod(layout.shape) <= 1:
        return None
    strides = list(layout.strides)
    if layout.ld_axis is not None:
        known = layout.core_dtype != _core.DType.bytes
        strides[layout.ld_axis] = ld * (layout.dtype.itemsize if known else 1)
    return tuple(strides)


def bytes_of(layout: Layout, ld: int) -> int:
    """From a tile's first byte to its last."""
    unit = 1 if layout.core_dtype == _core.DType.bytes else layout.dtype.itemsize
    return ((layout.cols - 1) * ld + layout.rows) * unit


class _Streams(threading.local):
    """A thread's, for making one takes as long as a small kernel."""

    def __init__(self) -> None:
        # By handle and device.
        self.of_engines: dict[tuple[int, int], Any] = {}
        self.marks: dict[tuple[int, int], Any] = {}  # what the library's current stream is then


_NOTHING_TO_LEAVE = nullcontext()

#: Arrays that a library keeps, for making one takes as long as a kernel, too.
_MOST_TILES = 4096


class DeviceArrays(ABC):
    """A library of arrays on GPUs; imported when it is first needed."""

    def __init__(self, module: str, name: str) -> None:
        self._module = self.library = module
        self.name = name
        self._imported: Any = None
        self._streams = _Streams()
        # Not by thread: one that ends can't let go of PyTorch's.
        self._tiles: dict[tuple[int, int, int, int], tuple[Layout, Any]] = {}

    @property
    def module(self) -> Any:
        """The library; raises `Unavailable` if it isn't installed."""
        if self._imported is None:
            try:
                self._imported = importlib.import_module(self._module)
            except ImportError as error:
                raise Unavailable(
                    f"arrays={self._module!r} needs {self.name}, which can't be imported: {error}"
                ) from error
        return self._imported

    def stream(self, stream: int, device: int) -> Any:
        """A stream of ours as the library's, which this thread keeps."""
        kept = self._streams.of_engines
        found = kept.get((stream, device))
        if found is None:
            found = kept[stream, device] = self._stream(stream, device)
        return found

    def view(self, layout: Layout, address: int, ld: int, device: int) -> Any:
        """A tile at an address of the device as an array; valid while the task runs."""
        key = (id(layout), address, ld, device)
        found = self._tiles.get(key)
        if found is None:
            if len(self._tiles) >= _MOST_TILES:
                self._tiles.clear()
            # With its layout, so that no other one gets its identity.
            found = self._tiles[key] = layout, self._tile(layout, address, ld, device)
        # What a callable does to the shape of its array doesn't concern the next one.
        return self._alias(found[1])

    @abstractmethod
    def on_stream(self, stream: int, device: int) -> AbstractContextManager[Any]:
        """Makes device and stream the library's current ones in this thread, one of the engine's.

        They may stay so: whatever a thread of the engine calls next sets them anew.
        """

    @abstractmethod
    def _stream(self, stream: int, device: int) -> Any:
        """A stream of ours as the library's."""

    @abstractmethod
    def _tile(self, layout: Layout, address: int, ld: int, device: int) -> Any:
        """The library's array of this memory."""

    @abstractmethod
    def _alias(self, tile: Any) -> Any:
        """Another array of the same memory."""


class _CuPy(DeviceArrays):
    def on_stream(self, stream: int, device: int) -> AbstractContextManager[Any]:
        cuda = self.module.cuda
        if cuda.runtime.getDevice() != device:
            cuda.Device(device).use()
        # Left again after each task: a thread that ends with a stream of ours crashes in CuPy.
        kept: AbstractContextManager[Any] = self.stream(stream, device)
        return kept

    def _stream(self, stream: int, device: int) -> Any:
        return self.module.cuda.ExternalStream(stream, device)

    def _tile(self, layout: Layout, address: int, ld: int, device: int) -> Any:
        cupy = self.module
        if prod(layout.shape) == 0:
            return cupy.empty(layout.shape, layout.dtype)
        size = bytes_of(layout, ld)
        memory = cupy.cuda.UnownedMemory(address, size, None, device)
        return cupy.ndarray(
            layout.shape,
            layout.dtype,
            memptr=cupy.cuda.MemoryPointer(memory, 0),
            strides=strides_at(layout, ld),
        )

    def _alias(self, tile: Any) -> Any:
        return tile.view()


class _Interface:
    """Carries what PyTorch asks for; it refuses memory that is said to be read-only."""

    def __init__(self, layout: Layout, address: int, ld: int) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": layout.shape,
            "typestr": layout.dtype.str,
            "data": (address, False),
            "strides": strides_at(layout, ld),
        }


class _Torch(DeviceArrays):
    def on_stream(self, stream: int, device: int) -> AbstractContextManager[Any]:
        cuda = self.module.cuda
        if cuda.current_device() != device:
            cuda.set_device(device)
        known = self._streams.marks.get((stream, device))
        if known is None or self._mark(device) != known:
            cuda.set_stream(self.stream(stream, device))
            self._streams.marks[stream, device] = self._mark(device)
        return _NOTHING_TO_LEAVE

    def _mark(self, device: int) -> Any:
        """What tells this thread's current stream from others, without an object for it."""
        try:
            return self.module._C._cuda_getCurrentStream(device)
        except AttributeError:  # an inner function, which may go
            return self.module.cuda.current_stream(device).cuda_stream

    def _stream(self, stream: int, device: int) -> Any:
        return self.module.cuda.ExternalStream(stream, device)

    def _tile(self, layout: Layout, address: int, ld: int, device: int) -> Any:
        torch = self.module
        place = torch.device("cuda", device)
        empty = prod(layout.shape) == 0
        tile = np.empty(layout.shape, layout.dtype) if empty else _Interface(layout, address, ld)
        return torch.as_tensor(tile, device=place)

    def _alias(self, tile: Any) -> Any:
        return tile.detach()


_LIBRARIES = {"cupy": _CuPy("cupy", "CuPy"), "torch": _Torch("torch", "PyTorch")}


def library(name: str) -> DeviceArrays:
    """A library by the name of its module."""
    if name not in _LIBRARIES:
        raise InvalidArgument(f"arrays={name!r}: expected one of {', '.join(_LIBRARIES)}")
    return _LIBRARIES[name]
