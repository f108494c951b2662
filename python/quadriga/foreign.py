# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/foreign.py: arrays of other libraries, used where they lie, and results like them.
"""Arrays of CuPy, PyTorch and libraries that offer `__cuda_array_interface__` or DLPack.

An array on the host becomes a NumPy array of the same memory. One on a device is described by a
`DeviceArray`, whose elements can't be read: nothing here copies any.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import InvalidArgument, InvalidType
from .typing import Array as Result

Array = npt.NDArray[Any]

#: Streams as `__cuda_array_interface__` counts them: all of a device, and the default one.
_EVERY_STREAM, _DEFAULT_STREAM = 0, 1
_CUDA, _CUDA_MANAGED = 2, 13  # of DLPack


@dataclass(frozen=True)
class Kind:
    """The library and device of an array; results are made of the same kind.

    Attributes
    ----------
    library : str
        The module: "numpy", "cupy", "torch", or another, of which no results can be made.
    place : Any
        The device, as the library describes it; None for NumPy.
    """

    library: str = "numpy"
    place: Any = None

    @property
    def on_device(self) -> bool:
        return self.library != "numpy" and not (
            self.library == "torch" and getattr(self.place, "type", "cpu") == "cpu"
        )

    def current(self) -> AbstractContextManager[Any]:
        """What is queued meanwhile is on the array's device: CuPy leaves this to its caller, and
        names the stream of the device that is current.
        """
        if self.library == "cupy":
            device: AbstractContextManager[Any] = sys.modules["cupy"].cuda.Device(self.place)
            return device
        return nullcontext()

    def make(self, shape: tuple[int, ...], dtype: Any, zeros: bool = False) -> Array | DeviceArray:
        """A new array of this kind, columns one after the other, seen as `seen` would."""
        if not self.on_device:
            made = np.zeros if zeros else np.empty
            return made(shape, dtype, order="F")
        with self.current():
            found = seen(self._native(shape, dtype, zeros))
        assert isinstance(found, DeviceArray)
        return found

    def _native(self, shape: tuple[int, ...], dtype: Any, zeros: bool) -> Any:
        if self.library == "cupy":
            cupy = sys.modules["cupy"]
            return (cupy.zeros if zeros else cupy.empty)(shape, dtype, order="F")
        if self.library == "torch":
            torch = sys.modules["torch"]
            make = torch.zeros if zeros else torch.empty
            kind = getattr(torch, np.dtype(dtype).name)
            native = make(shape[::-1], dtype=kind, device=self.place)
            return native.permute(tuple(range(len(shape))[::-1]))
        raise InvalidType(
            f"results can't be made as arrays of '{self.library}', only as those of NumPy, "
            "CuPy and PyTorch: pass an array of yours that may be overwritten"
        )

    def give(self, array: Array | DeviceArray) -> Result:
        """What the caller gets for an array that was made, or seen, as this kind."""
        found: Result
        if isinstance(array, DeviceArray):
            found = array.native
        elif self.library == "torch":
            found = sys.modules["torch"].from_numpy(array)
        else:
            found = array
        return found

    def __str__(self) -> str:
        names = {"numpy": "NumPy", "cupy": "CuPy", "torch": "PyTorch"}
        where = "" if self.place is None else f" on {self.place}"
        return names.get(self.library, self.library) + where


@dataclass(frozen=True)
class DeviceArray:
    """An array in a device's memory, in NumPy's words.

    Attributes
    ----------
    native : Any
        The array itself, which is kept while this is.
    address : int
    strides : tuple of int
        In bytes.
    stream : int or None
        Of the owner, as `__cuda_array_interface__` counts: what is queued there comes before us;
        0 stands for all streams, None says that there is nothing to wait for.
    """

    native: Any
    kind: Kind
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    writeable: bool
    stream: int | None
    lent: Any = None  # what keeps the memory, beside `native`

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def span(self) -> range:
        """The bytes from the first element to the last."""
        if self.size == 0:
            return range(self.address, self.address)
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        first = self.address + sum(min(step, 0) for step in steps)
        return range(first, self.address + sum(max(step, 0) for step in steps) + self.itemsize)

    @property
    def shadow(self) -> Array:
        """An array with the same shape, type and strides over no memory: never to be read."""
        nothing = np.empty(1 if self.size else 0, self.dtype)
        if self.size == 0:
            return nothing.reshape(self.shape)
        return np.lib.stride_tricks.as_strided(nothing, self.shape, self.strides)

    @property
    def is_contiguous(self) -> bool:
        """Whether its columns or its rows can be used as they are."""
        if self.ndim < 2:
            return self.size <= 1 or self.strides[0] == self.itemsize
        rows, cols = self.shape
        down, right = self.strides
        by_columns = (down == self.itemsize or rows == 1) and (
            right >= rows * self.itemsize or cols == 1
        )
        by_rows = (right == self.itemsize or cols == 1) and (
            down >= cols * self.itemsize or rows == 1
        )
        whole = down % self.itemsize == 0 and right % self.itemsize == 0
        return self.size == 0 or (whole and (by_columns or by_rows))

    def matrix(self, rows: int, cols: int) -> DeviceArray:
        """A vector or a number as a matrix with one row or column."""
        item = self.itemsize
        stride = self.strides[0] if self.ndim == 1 else item
        strides = (item, stride) if rows == 1 and cols != 1 else (stride, max(rows, 1) * stride)
        return replace(self, shape=(rows, cols), strides=strides)

    def converted(self, dtype: npt.DTypeLike) -> DeviceArray:
        """A copy on the device, of another type, columns one after the other."""
        made = self.kind.make(self.shape, dtype)
        assert isinstance(made, DeviceArray)
        with self.kind.current():
            made.native[...] = self.native
        return made

    def conjugated(self) -> DeviceArray:
        """A copy on the device of the conjugate, columns one after the other."""
        made = self.converted(self.dtype)
        with self.kind.current():
            made.native[...] = self.native.conj()
        return made

    def set(self, factor: complex) -> None:
        """Multiply all elements; 0 sets them, whatever they were."""
        with self.kind.current():
            self.native[...] = 0 if factor == 0 else self.native * factor

    def all_finite(self) -> bool:
        library = self._library("check_finite=False")
        with self.kind.current():
            return bool(library.isfinite(self.native).all())

    def asymmetry(self) -> tuple[float, float]:
        """The largest element, and the largest difference to the conjugate transpose."""
        absolute = self._library("check_symmetric=False, assume_a='pos'").abs
        with self.kind.current():
            far = absolute(self.native - self.native.conj().T)
            return float(absolute(self.native).max()), float(far.max())

    def _library(self, instead: str) -> Any:
        if self.kind.library not in ("cupy", "torch"):
            raise InvalidType(
                f"an array of '{self.kind.library}' can't be checked where it lies: pass {instead}"
            )
        return sys.modules[self.kind.library]


class Registered:
    """Base of `Data`: an object that stands for a registered array."""

    @property
    def known(self) -> Any:
        """The array, on the host or a device; None if there is none."""
        raise NotImplementedError


def kind_of(value: Any) -> Kind | None:
    """An array's library and device; None for lists, numbers and sources."""
    if isinstance(value, Registered):
        return None if value.known is None else kind_of(value.known)
    library = str(type(value).__module__).partition(".")[0]  # None: of a type made by ctypes
    if library == "cupy":
        return Kind("cupy", value.device.id)
    if library == "torch":
        return Kind("torch", value.device)
    if isinstance(value, np.ndarray):
        return Kind()
    if isinstance(value, DeviceArray):
        return value.kind
    if offers(value, "__cuda_array_interface__"):
        return Kind(library, "a device")
    if offers(value, "__dlpack_device__") and value.__dlpack_device__()[0] in _ON_DEVICE:
        return Kind(library, "a device")
    return None


_ON_DEVICE = (_CUDA, _CUDA_MANAGED)


def offers(value: Any, name: str) -> bool:
    """Whether an object has an attribute; not if its own lookup raises something else."""
    try:
        return hasattr(value, name)
    except Exception:
        return False


def seen(value: Any) -> Any:
    """A DeviceArray for an array on a device, a NumPy array for another library's on the host, and
    anything else unchanged; never a copy.
    """
    if isinstance(value, Registered) and value.known is not None:
        value = value.known
    kind = kind_of(value)
    if isinstance(value, (np.ndarray, DeviceArray)):
        return value
    if kind is not None and kind.library == "torch":
        return _tensor(value, kind)
    with (kind or Kind()).current():
        interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None and kind is not None:
        return _by_interface(value, interface, kind)
    if kind is not None:  # on a device; `__array__` would copy it from there
        return _by_dlpack(value, kind)
    if offers(value, "__dlpack_device__") and not offers(value, "__array__"):
        return np.from_dlpack(value)
    return value


def _tensor(tensor: Any, kind: Kind) -> Array | DeviceArray:
    if tensor.requires_grad:
        raise InvalidType("the tensor requires a gradient, and nothing here has one: pass detach()")
    if tensor.layout is not sys.modules["torch"].strided:
        raise InvalidType(f"tensors of layout {tensor.layout} have no plain memory to use")
    if getattr(kind.place, "type", "") == "meta":
        raise InvalidType("the tensor is on PyTorch's device 'meta', where it has no content")
    # Conjugation and negation that PyTorch has put off are made on its device.
    whole = tensor.resolve_conj().resolve_neg()
    # A copy that was made for us isn't the caller's to be written.
    own = whole.data_ptr() == tensor.data_ptr()
    if not kind.on_device:
        try:
            array = np.asarray(whole)
        except (TypeError, RuntimeError):
            raise InvalidType(f"NumPy has no type for elements of {tensor.dtype}") from None
        if not own:
            array.flags.writeable = False
        return array
    name = str(tensor.dtype).removeprefix("torch.")
    try:
        dtype = np.dtype(name)
    except TypeError:
        raise InvalidType(f"NumPy has no type for elements of {tensor.dtype}") from None
    item = dtype.itemsize
    stream = sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream
    strides = tuple(step * item for step in whole.stride())
    return DeviceArray(whole, kind, whole.data_ptr(), tuple(whole.shape), strides, dtype, own,
                       stream or _DEFAULT_STREAM)  # fmt: skip


def _by_interface(value: Any, interface: dict[str, Any], kind: Kind) -> DeviceArray:
    if interface.get("mask") is not None:
        raise InvalidArgument("masked arrays are not supported")
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    address, read_only = interface["data"]
    strides = interface.get("strides")
    if strides is None:  # rows one after the other
        strides = [prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    old = interface.get("version", 0) < 3
    stream = _EVERY_STREAM if old else interface.get("stream")
    return DeviceArray(value, kind, address or 0, shape, tuple(strides), dtype, not read_only,
                       stream)  # fmt: skip


def _by_dlpack(value: Any, kind: Kind) -> DeviceArray:
    lent = _core.DLPack(value)
    if not lent.dtype:
        raise InvalidType("NumPy has no type for the elements of this array")
    # Its library was asked to have everything ready for the default stream.
    # What may be written isn't known of it: arrays of some libraries never change.
    return DeviceArray(value, kind, lent.address, tuple(lent.shape), tuple(lent.strides),
                       np.dtype(lent.dtype), False, _DEFAULT_STREAM, lent)  # fmt: skip


def device_of(core: _core.Engine, array: DeviceArray) -> int | None:
    """The engine's device that holds the array; None for an array without elements."""
    if array.size == 0:
        return None
    device = core.device_of(array.address)
    if device is None:
        raise InvalidArgument(
            f"the array of {array.kind} says that it lies on a GPU, and no device of this engine "
            "has this memory: expected an engine with that GPU, as Engine('cuda')"
        )
    return device


def await_stream(core: _core.Engine, array: DeviceArray) -> None:
    """Wait for what the stream of the array's owner has queued."""
    device = device_of(core, array)
    if device is not None and array.stream is not None:
        core.synchronize(device, array.stream)


def share_memory(one: Any, other: Any) -> bool:
    """Whether two arrays, on the host or a device, may have bytes in common."""
    if isinstance(one, DeviceArray) and isinstance(other, DeviceArray):
        a, b = one.span, other.span
        return a.start < b.stop and b.start < a.stop
    both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return both and np.may_share_memory(one, other)
