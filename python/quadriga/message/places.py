# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/places.py: places of arrays that the buffer protocol doesn't describe.
"""Where the elements of an array are, for the extension module."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InvalidArgument, InvalidType
from ..foreign import DeviceArray, Kind, kind_of, seen
from .devices import DeviceBuffer
from .elements import address_of
from .layout import Layout


def described(
    array: Any, layout: Layout | None, writes: bool, stream: Any = None
) -> tuple[Any, ...]:
    """The address, the layout and the array that must live as long as the message; of one in a
    device's memory also what holds it, None for CUDA, and the stream to be awaited, or None: the
    given one, if one is given, else the array's.
    """
    caller = "recv" if writes else "send"
    found = _on_device(array, writes)
    if found is not None:
        if stream is not None:
            found = replace(found, stream=number_of(stream, caller))
        return _described_on_device(found, layout, caller)
    if stream is not None:
        raise InvalidArgument(f"{caller}: the array is on the host; stream orders those of devices")
    if writes and isinstance(array, np.generic):
        raise InvalidType(f"recv: {type(array).__name__} can't be written; expected an array")
    if writes and isinstance(array, bytes):
        # NumPy would make a copy of it, which nobody sees.
        raise InvalidType("recv: bytes can't be written; expected a bytearray or an array")
    if not isinstance(array, np.ndarray):
        array = _as_array(array, caller)
    if writes and not array.flags.writeable:
        raise InvalidArgument(f"{caller}: the array can't be written")
    if layout is None:
        return address_of(array), Layout.of(array).core, array
    if not isinstance(layout, Layout):
        raise InvalidType(f"{caller}: layout is {type(layout).__name__}; expected a Layout")
    return layout.address_in(array, caller), layout.core, array


def _on_device(array: Any, writes: bool) -> DeviceArray | None:
    """An array in a device's memory, in NumPy's words; None for others."""
    if isinstance(array, DeviceBuffer):
        return DeviceArray(
            array, Kind("quadriga", "a device"), array.address, array.shape, array.strides,
            array.dtype, True, None,
        )  # fmt: skip
    if isinstance(array, np.ndarray) or not (
        hasattr(array, "__cuda_array_interface__") or hasattr(array, "__dlpack_device__")
    ):
        return None
    kind = kind_of(array)
    if kind is None or not kind.on_device:
        return None
    try:
        found = seen(array)
    except InvalidType:
        raise
    except (BufferError, RuntimeError, TypeError):
        return None  # Who takes it for one on the host says what is wrong.
    if not isinstance(found, DeviceArray):
        return None
    if writes and not found.writeable:
        raise InvalidArgument("recv: the array can't be written")
    return found


def _described_on_device(array: DeviceArray, layout: Layout | None, caller: str) -> tuple[Any, ...]:
    held = array.native.devices.core if isinstance(array.native, DeviceBuffer) else None
    shadow = array.shadow
    if layout is None:
        return array.address, Layout.of(shadow).core, array, held, array.stream
    if not isinstance(layout, Layout):
        raise InvalidType(f"{caller}: layout is {type(layout).__name__}; expected a Layout")
    layout.check_within(array.span, array.address, caller)
    return array.address, layout.core, array, held, array.stream


def number_of(stream: Any, caller: str) -> int:
    """What the device's library calls a stream: CuPy's, PyTorch's, one of `Devices`, or a number.

    The default stream, which they count as 0, is 1 here as in `__cuda_array_interface__`.
    """
    found = stream
    for name in ("ptr", "cuda_stream"):
        found = getattr(stream, name, found)
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__()[1]
    if isinstance(found, bool) or not isinstance(found, int | np.integer) or found < 0:
        raise InvalidType(
            f"{caller}: stream is {type(stream).__name__}; expected a stream of CuPy, PyTorch or "
            "Devices, or its address"
        )
    return int(found) or 1


def _as_array(given: Any, caller: str) -> np.ndarray[Any, Any]:
    """The same memory as an array of NumPy."""
    if not hasattr(given, "__array_interface__") and not hasattr(given, "__buffer__"):
        try:
            memoryview(given)
        except TypeError:
            return _from_dlpack(given, caller)
    return np.asarray(given)


def _from_dlpack(given: Any, caller: str) -> np.ndarray[Any, Any]:
    """Of tensors on the host; NumPy and their library say what else can't be used."""
    name = type(given).__name__
    if not hasattr(given, "__dlpack__"):
        raise InvalidType(f"{caller}: {name} is no array; messages carry arrays only")
    try:
        return np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError) as error:
        raise InvalidType(f"{caller}: {name} is no array on the host: {error}") from error
