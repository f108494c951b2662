# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/devices.py: arrays in memory of emulated devices, for messages.
"""Memory of emulated devices: what programs for GPUs are tried with where there is none."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import InvalidArgument

Array = npt.NDArray[Any]


class DeviceBuffer:
    """An array in an emulated device's memory, rows one after the other.

    Communicators send and receive it as they do arrays of CuPy and PyTorch. `set` and `get` copy
    from and to arrays on the host.
    """

    def __init__(self, devices: Devices, device: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.devices = devices
        self.device = device
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.nbytes = prod(shape) * self.dtype.itemsize
        self.address = devices.core.allocate(device, max(self.nbytes, 1))

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address:
            self.devices.core.deallocate(self.device, address)

    def set(self, array: npt.ArrayLike) -> None:
        """Copy an array of the same shape from the host."""
        given = np.ascontiguousarray(array, self.dtype)
        if given.shape != self.shape:
            raise InvalidArgument(f"set: the array's shape is {given.shape}; expected {self.shape}")
        self.devices.core.write(self.device, self.address, given.ctypes.data, self.nbytes)

    def get(self) -> Array:
        """Copy it to the host."""
        made = np.empty(self.shape, self.dtype)
        self.devices.core.read(self.device, self.address, made.ctypes.data, self.nbytes)
        return made

    def __repr__(self) -> str:
        return f"DeviceBuffer(shape={self.shape}, dtype={self.dtype}, device={self.device})"


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
