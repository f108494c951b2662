# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/batches.py: copies a loader's batches to GPUs before a program requests them.
"""Prefetching: one thread reads and the engine copies while the program computes.

1. A slot has an array on a device for each array of a batch. It is free, being filled, or lent to
   the program, and passes from one state to the next through a queue: no lock guards it.
2. A slot is filled once all work that the program queued while it held the slot has ended.
3. A batch is handed out when its copies have ended, so that every stream may use it.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .arguments import whole
from .codelets import Codelet
from .data import Data
from .defaults import default_engine
from .device_arrays import library
from .engine import Engine
from .errors import InvalidArgument, InvalidType
from .foreign import kind_of, seen
from .future import Future
from .homeward import Arriving, Passed, Sender
from .machine import Machine

_PATIENCE = 1.0  # seconds that a program which leaves waits for the reader


class Home(ABC):
    """Where batches go: memory of devices, as a library's arrays.

    Attributes
    ----------
    devices : tuple of int
        Of the engine, in the order in which they get batches.
    """

    devices: tuple[int, ...] = ()

    @abstractmethod
    def empty(self, device: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new array on a device."""

    @abstractmethod
    def mark(self, device: int) -> Passed:
        """What waits until all has passed that this thread's current stream has now."""


class _Torch(Home):
    def __init__(self, engine: Engine) -> None:
        self._torch = library("torch").module
        self._ordinals = _ordinals(engine, self._torch.cuda.device_count(), self._probe)
        self.devices = tuple(self._ordinals)

    def _probe(self, ordinal: int) -> int:
        return int(self._torch.empty(1, device=f"cuda:{ordinal}").data_ptr())

    def empty(self, device: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        kind = getattr(self._torch, dtype.name)
        return self._torch.empty(shape, dtype=kind, device=f"cuda:{self._ordinals[device]}")

    def mark(self, device: int) -> Passed:
        event = self._torch.cuda.Event()
        event.record(self._torch.cuda.current_stream(self._ordinals[device]))
        return event.synchronize  # type: ignore[no-any-return]


class _CuPy(Home):
    def __init__(self, engine: Engine) -> None:
        self._cupy = library("cupy").module
        count = self._cupy.cuda.runtime.getDeviceCount()
        self._ordinals = _ordinals(engine, count, self._probe)
        self.devices = tuple(self._ordinals)

    def _probe(self, ordinal: int) -> int:
        with self._cupy.cuda.Device(ordinal):
            return int(self._cupy.empty(1).data.ptr)

    def empty(self, device: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        with self._cupy.cuda.Device(self._ordinals[device]):
            return self._cupy.empty(shape, dtype)

    def mark(self, device: int) -> Passed:
        with self._cupy.cuda.Device(self._ordinals[device]):
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record()
        return event.synchronize  # type: ignore[no-any-return]


def _ordinals(engine: Engine, count: int, probe: Callable[[int], int]) -> dict[int, int]:
    """A library's numbers of the engine's GPUs, told by an address on each until all are found."""
    wanted = sum(device.kind == "cuda" for device in engine.machine.devices)
    found: dict[int, int] = {}
    for ordinal in range(count):
        if len(found) == wanted:
            break
        device = engine.core.device_of(probe(ordinal))
        if device is not None:
            found[device] = ordinal
    return found


class _Nowhere(Home):
    """Without GPUs batches stay as they are."""

    def empty(self, device: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        raise NotImplementedError

    def mark(self, device: int) -> Passed:
        return _nothing


def _nothing() -> None:
    return


HOMES: dict[str, Callable[[Engine], Home]] = {"cupy": _CuPy, "torch": _Torch}


def prefetch(
    iterable: Iterable[Any],
    *,
    devices: str | Machine | None = None,
    engine: Engine | None = None,
    arrays: str,
    ahead: int = 2,
) -> Prefetched:
    """Copy batches to GPUs: the next are read and copied while the program computes with this one.

    A separate thread reads the iterable. Its batches go to the devices in turn and arrive in
    order. A batch is a NumPy array, a PyTorch tensor on the host, or a tuple, list or dict of
    these; all other values are passed through. If the engine has no CUDA device, batches are read
    ahead and stay unchanged.

    Parameters
    ----------
    iterable : iterable
        Such as PyTorch's `DataLoader`. It must not change a batch's arrays before the next batch
        but `ahead` is requested.
    devices : str or Machine, optional
        For a separate engine, such as ``"cuda:2,memory=4GiB"``. Default: the current engine.
    engine : Engine, optional
    arrays : {"cupy", "torch"}
        Library of the batches' arrays.
    ahead : int
        Batches on each device beside the one that the program holds.

    Returns
    -------
    Prefetched
        An iterator. A batch's arrays belong to the program until it requests the next batch; they
        are refilled only after the work queued on the library's current stream by then has ended.
        Leaving the loop stops the reading. `to_host` copies results to the host in the background.

    Raises
    ------
    Exception
        The iterable's exception, after the batches before it.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> loader = ((np.full(3, float(number)), number) for number in range(2))
    >>> for x, label in quadriga.prefetch(loader, devices="cpu:1", arrays="torch"):
    ...     print(x, label)
    [0. 0. 0.] 0
    [1. 1. 1.] 1
    """
    if arrays not in HOMES:
        raise InvalidArgument(f"arrays={arrays!r}: expected one of {', '.join(HOMES)}")
    if engine is not None and devices is not None:
        raise InvalidArgument("prefetch takes devices or an engine, not both")
    if not isinstance(iterable, Iterable):
        raise InvalidType(f"expected an iterable of batches, got {type(iterable).__name__}")
    ahead = whole("ahead", ahead, 1, 2**20)
    own = Engine(devices) if devices is not None else None
    used = own or engine or default_engine()
    has_any = arrays not in ("cupy", "torch") or any(
        device.kind == "cuda" for device in used.machine.devices
    )
    home = HOMES[arrays](used) if has_any else _Nowhere()
    return Prefetched(_Reader(iterable, used, home, arrays, ahead), own)


class Prefetched(Iterator[Any]):
    """The batches of `prefetch`, and copies of the program's results to the host."""

    def __init__(self, reader: _Reader, own: Engine | None) -> None:
        self._reader = reader
        self._batches = reader.batches(own)

    def __next__(self) -> Any:
        return next(self._batches)

    def to_host(self, array: Any) -> Arriving:
        """Copy an array to the host in the background; it must not change until then.

        Parameters
        ----------
        array : array
            Of the library, computed by work queued on its current stream. An array on the host is
            copied, too.

        Returns
        -------
        Arriving
            Its `result()` waits for the array and returns it as a NumPy array.

        Examples
        --------
        >>> import numpy as np, quadriga
        >>> loader = (np.full(3, float(number)) for number in range(2))
        >>> batches = quadriga.prefetch(loader, devices="cpu:1", arrays="torch")
        >>> coming = [batches.to_host(2 * x) for x in batches]
        >>> [each.result().tolist() for each in coming]
        [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]
        """
        return self._reader.sender.send(array, self._reader.home.mark)

    def close(self) -> None:
        """Stop the reading; copies to the host that are under way still complete."""
        self._batches.close()


class _Slot:
    """Arrays on a device for one batch; they are made again where shapes change."""

    def __init__(self, engine: Engine, home: Home, device: int, copy: Codelet) -> None:
        self.device = device
        self.passed: Passed = _nothing
        self._engine = engine
        self._home = home
        self._copy = copy
        self._targets: list[tuple[Any, Data]] = []
        self._sources: list[Data] = []  # of the batch that is filled
        self._futures: list[Future] = []
        self._used = 0  # targets of the batch that is filled

    def fill(self, batch: Any) -> Any:
        """Queue a batch's copies; the batch with arrays of this slot, for when they have ended."""
        self.passed()
        self._used = 0
        return _mapped(batch, self._put)

    def wait(self) -> None:
        """Wait until the copies have ended; raises what one of them raised."""
        sources, futures = self._sources, self._futures
        self._sources, self._futures = [], []
        for future in futures:
            future.result()
        for source in sources:  # its memory may have other content when it comes again
            source.evict()

    def _put(self, array: Any) -> Any:
        host = seen(array)
        if not host.flags.c_contiguous:
            host = host.copy(order="C")
        target, data = self._target(host.shape, host.dtype)
        if host.size:
            source = self._engine.data(host)
            self._sources.append(source)
            self._futures.append(
                self._engine.submit(self._copy, source.read(), data.write(), device=self.device)
            )
        return target

    def _target(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Any, Data]:
        at = self._used
        self._used += 1
        fits = at < len(self._targets) and (
            (self._targets[at][1].shape, self._targets[at][1].dtype) == (shape, dtype)
        )
        if not fits:
            made = self._home.empty(self.device, shape, dtype)
            self._targets[at : at + 1] = [(made, self._engine.data(made))]
        return self._targets[at]


class _Reader:
    """The thread that reads, and the queues between it and the program."""

    def __init__(
        self, iterable: Iterable[Any], engine: Engine, home: Home, arrays: str, ahead: int
    ) -> None:
        known = arrays if arrays in ("cupy", "torch") else None
        copy = Codelet(_copy, ["read", "write"], name="prefetch", host_only=False, arrays=known)
        self.sender = Sender(engine, copy)
        self.home = home
        self._iterable = iterable
        self._home = home
        self._left = False  # set once, by the program's thread
        self._ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._free: list[queue.SimpleQueue[_Slot | None]] = []
        for device in home.devices or (-1,):
            self._free.append(queue.SimpleQueue())
            for _ in range(ahead + 1):
                self._free[-1].put(_Slot(engine, home, device, copy))

    def batches(self, own: Engine | None) -> Generator[Any, None, None]:
        """For the program's thread."""
        thread = threading.Thread(target=self._read, name="quadriga-prefetch", daemon=True)
        thread.start()
        try:
            while (item := self._ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                batch, slot, turn = item
                slot.wait()
                yield batch
                slot.passed = self._home.mark(slot.device)
                self._free[turn].put(slot)
        finally:
            self._left = True
            for free in self._free:  # the reader may wait there
                free.put(None)
            thread.join(_PATIENCE)
            self.sender.close()
            if own is not None:
                own.close()

    def _read(self) -> None:
        try:
            for number, batch in enumerate(self._iterable):
                turn = number % len(self._free)
                slot = self._free[turn].get()
                if slot is None or self._left:
                    return
                placed = slot.fill(batch) if self._home.devices else batch
                self._ready.put((placed, slot, turn))
            self._ready.put(None)
        except BaseException as error:
            self._ready.put(error)


def _copy(source: Any, target: Any) -> None:
    target[...] = source


def _mapped(value: Any, put: Callable[[Any], Any]) -> Any:
    """A batch with its arrays on the host replaced."""
    if isinstance(value, Mapping):
        return {key: _mapped(each, put) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(each, put) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(each, put) for each in value)
    kind = kind_of(value)
    objects = isinstance(value, np.ndarray) and value.dtype.hasobject
    return value if kind is None or kind.on_device or objects else put(value)
