# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/devices.py: arrays in memory of emulated devices, for messages.
"""Memory of emulated devices: what programs for GPUs are tried with where there is none."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import InvalidArgument
from .layout import Layout

Array = npt.NDArray[Any]


class DeviceBuffer:
    """An array in an emulated device's memory, rows one after the other.

    Communicators take it as they do arrays of CuPy and PyTorch. `set` and `get` copy from and to
    arrays on the host; slices are views of the same memory.
    """

    def __init__(
        self, devices: Devices, device: int, shape: tuple[int, ...], dtype: npt.DTypeLike
    ) -> None:
        self.devices = devices
        self.device = device
        self.dtype = np.dtype(dtype)
        self.nbytes = prod(shape) * self.dtype.itemsize
        self.base: DeviceBuffer | None = None
        self._see(_shadow(shape, self.dtype))
        self.address = devices.core.allocate(device, max(self.nbytes, 1))

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address and self.base is None:
            self.devices.core.deallocate(self.device, address)

    def _see(self, shadow: Array) -> None:
        self.shape: tuple[int, ...] = shadow.shape
        self.strides: tuple[int, ...] = shadow.strides
        self._shadow = shadow

    def __len__(self) -> int:
        return len(self._shadow)

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def T(self) -> DeviceBuffer:
        """A view with its axes in reverse order."""
        return self._view(self._shadow.T)

    def __getitem__(self, index: Any) -> DeviceBuffer:
        """A view by integers and slices."""
        each = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(one, int | slice | type(...)) for one in each):
            raise InvalidArgument("views of device memory are made by integers and slices")
        whole = each if ... in each else (*each, ...)
        return self._view(self._shadow[whole])

    def _view(self, shadow: Array) -> DeviceBuffer:
        made = DeviceBuffer.__new__(DeviceBuffer)
        made.devices, made.device, made.dtype = self.devices, self.device, self.dtype
        made.base = self if self.base is None else self.base
        made.nbytes = shadow.nbytes
        moved = shadow.__array_interface__["data"][0] - self._shadow.__array_interface__["data"][0]
        made.address = self.address + int(moved)
        made._see(shadow)
        return made

    def set(self, array: npt.ArrayLike) -> None:
        """Copy an array of the same shape from the host."""
        given = np.ascontiguousarray(array, self.dtype)
        if given.shape != self.shape:
            raise InvalidArgument(f"set: the array's shape is {given.shape}; expected {self.shape}")
        layout = Layout.of(self._shadow).core
        self.devices.core.write(self.device, self.address, given.ctypes.data, layout)

    def get(self) -> Array:
        """Copy it to the host."""
        made = np.empty(self.shape, self.dtype)
        layout = Layout.of(self._shadow).core
        self.devices.core.read(self.device, self.address, made.ctypes.data, layout)
        return made

    def __repr__(self) -> str:
        return f"DeviceBuffer(shape={self.shape}, dtype={self.dtype}, device={self.device})"


class DeviceStream:
    """A stream of an emulated device, as programs for GPUs have of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import message
    >>> gpus = message.Devices("emulated:1,memory=1MiB")
    >>> stream, a, b = gpus.stream(), gpus.empty(3), gpus.empty(3)
    >>> with message.world() as comm:
    ...     request = comm.irecv(b, comm.rank, stream=stream)
    ...     stream.call(lambda: a.set(np.arange(3.0)))
    ...     comm.send(a, comm.rank, stream=stream)   # what the call above wrote
    ...     _ = request.wait()                       # what the stream gets now comes after b
    >>> stream.synchronize()
    >>> b.get()
    array([0., 1., 2.])
    """

    def __init__(self, devices: Devices, device: int) -> None:
        self.devices = devices
        self.device = device
        self.ptr = devices.core.open_stream(device)

    def call(self, function: Callable[[], object]) -> None:
        """Queue a function; it is called once all that was queued before has ended."""
        self.devices.core.call(self.ptr, function)

    def synchronize(self) -> None:
        """Wait for all that is queued."""
        self.devices.core.synchronize(self.device, self.ptr)


def _shadow(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Shape, type and strides of rows one after the other, over no memory: never to be read."""
    steps = [prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    one = np.empty(1 if prod(shape) else 0, dtype)
    if one.size == 0:
        return one.reshape(shape)
    return np.lib.stride_tricks.as_strided(one, shape, steps)


class Devices:
    """Emulated devices of this process, whose memory other ranks may map.

    Parameters
    ----------
    devices : str
        As an engine's: "emulated:2,memory=64MiB,h2d=6GB/s,peer=20GB/s". Copies between devices take
        as long as these links say.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import message
    >>> gpus = message.Devices("emulated:2,memory=1MiB")
    >>> a, b = gpus.array(np.arange(3.0)), gpus.empty(3, device=1)
    >>> with message.world() as comm:
    ...     request = comm.irecv(b, comm.rank)
    ...     comm.send(a, comm.rank)
    ...     _ = request.wait()
    >>> b.get()
    array([0., 1., 2.])
    """

    def __init__(self, devices: str = "emulated:1") -> None:
        self.core = _core.MessageDevices(devices)

    def __len__(self) -> int:
        return int(self.core.count)

    def stream(self, device: int = 0) -> DeviceStream:
        """A new stream of a device, for `stream=` of messages."""
        return DeviceStream(self, device)

    def empty(
        self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = float, device: int = 0
    ) -> DeviceBuffer:
        """A new array on a device."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        return DeviceBuffer(self, device, sizes, dtype)

    def array(self, array: npt.ArrayLike, device: int = 0) -> DeviceBuffer:
        """A copy of an array of the host on a device."""
        given = np.asarray(array)
        made = self.empty(given.shape, given.dtype, device)
        made.set(given)
        return made
