# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/engine.py: the engine: registers arrays, submits tasks, waits, counts and traces.
"""The engine, which runs tasks on all devices of a machine."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, cuda_libraries, current, others, registered, residence
from .arguments import device_index, flag, path_of, seconds_of, sizes, switch, text_of, whole
from .beside import target_of, write_beside
from .codelets import Codelet
from .collector import Kept
from .completion import hides
from .counters import Counters, from_core
from .data import Data, Operand
from .ending import Ending
from .errors import InvalidArgument, InvalidType
from .foreign import DeviceArray, device_of, seen
from .future import Future
from .given import Result
from .layout import layout_of, layout_of_new, layout_on_device
from .machine import Device, Machine, core_of
from .parameters import frozen
from .place import Place, Retired
from .record import Record, lacking
from .settings import config
from .tasks import Tasks
from .tile_room import TileRoom
from .typing import Array, DLPackArray

_NO_DEVICE = 0xFFFF
_MANY_RETIRED = 64  # 1 once there are tiles, which need room
_MOST = 2**63 - 1
_NONE: list[_core.Future] = []


@hides("core")
class Engine:
    """Runs tasks on devices; a context manager that waits on exit.

    Inside its ``with`` block `default_engine` returns this engine.

    Parameters
    ----------
    devices : str or Machine, optional
        A device list, such as ``"cpu:2"`` or ``"emulated:4,memory=64MiB"``, or a machine.
        Default: the setting, else all usable GPUs, else the host's cores.
    policy : str, optional
        Chooses device and order of tasks: one of `policies`. Default: the setting.
    window : int, optional
        Maximum number of tasks submitted but not ended. Default: the setting.
    virtual_clock : bool
        Simulate time from the rates in the machine's description; the same seed gives the same run.
    compute, protect : bool
        Under the virtual clock: whether bodies run, or only their time counts; whether a task that
        accesses device memory other than its operands fails.
    seed : int
        Seed of the policy's random choices.
    trace : bool or path-like, optional
        Record a trace; if a path, the trace is written there when the engine is closed.
    host_memory : int or str, optional
        Limit of host memory for tiles without an array there: bytes, or text such as ``"2GiB"``.
    spill : path-like, optional
        A file to create, for what that limit leaves no room for (see `Machine.with_spill`).
    renaming : int or str, optional
        Limit of memory for what tasks overwrite while others read it, or 0. Default: the setting.
    reproducible : bool, optional
        Default of `reproducible` in `linalg` calls. Default: the setting.
    believed : str or Machine, optional
        Under the virtual clock: other links and kernel times, by which plans and policies choose.

    Raises
    ------
    InvalidArgument
        If an argument, or a part of the device list, isn't accepted.
    Unavailable, IoError
        If there are no such devices; if `trace` or `spill` can't be written.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> @quadriga.codelet(access=["read", "read", "update"])
    ... def multiply(a, b, c):
    ...     c += a @ b
    >>> c = np.zeros((2, 2))
    >>> with quadriga.Engine("emulated:2,memory=1MiB") as engine:
    ...     a, b, result = (engine.data(x) for x in (np.eye(2), np.ones((2, 2)), c))
    ...     future = engine.submit(multiply, a.read(), b.read(), result.update())
    >>> c
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(
        self,
        devices: str | Machine | None = None,
        *,
        policy: str | None = None,
        window: int | None = None,
        virtual_clock: bool = False,
        compute: bool = True,
        protect: bool = False,
        seed: int = 1,
        trace: bool | str | os.PathLike[str] | None = None,
        host_memory: int | str | None = None,
        spill: str | os.PathLike[str] | None = None,
        renaming: int | str | None = None,
        reproducible: bool | None = None,
        believed: str | Machine | None = None,
    ) -> None:
        machine = devices if isinstance(devices, Machine) else None
        listed = "" if machine else text_of("devices", devices, "a device list or a Machine")
        trace = config["trace"] if trace is None else trace
        trace_path = "" if isinstance(trace, bool) else path_of("trace", trace)
        if trace_path:
            target_of(trace_path)  # who can't write a trace says so before the work, not after it
        policy = text_of("policy", policy, "a name, as 'affinity'")
        if not virtual_clock and cuda_libraries.needed_by(machine or listed or config["devices"]):
            cuda_libraries.use()
        self.core = _core.Engine(
            devices=listed,
            policy=policy,
            window=0 if window is None else whole("window", window, 1, _MOST),
            virtual_clock=switch("virtual_clock", virtual_clock),
            compute=switch("compute", compute),
            protect=switch("protect", protect),
            seed=whole("seed", seed, 0, _MOST),
            trace=bool(trace),
            host_memory=_core.parse_bytes(str(host_memory)) if host_memory is not None else 0,
            spill=path_of("spill", spill),
            renaming=0 if renaming is None else _core.parse_bytes(str(renaming)) or 2**64 - 1,
            reproducible=flag("reproducible", reproducible),
            machine=machine.core if machine else None,
            believed=core_of("believed", believed),
        )
        self._traced = bool(trace)
        self._trace_path = trace_path or None
        self._devices: tuple[Device, ...] | None = None
        self._tasks = Tasks(self.core, virtual_clock)
        self._retired: Retired = Kept() if virtual_clock else deque()
        self._many_retired = _MANY_RETIRED
        self._codelets: set[Codelet] = set()  # a trace names them to the end
        self._known: dict[int, weakref.ref[Place]] = {}  # by the array's id, as long as it is held
        self._block: current.Block | None = None
        self._ending = Ending(self, self.core, self._tasks, self._retired, self._codelets)

    def __del__(self) -> None:
        if hasattr(self, "_ending"):
            self._ending.end_warning()

    # Data

    def data(self, array: Array | DLPackArray, *, resident: bool = False) -> Data:
        """Register an array: tasks work on its memory, which the engine keeps alive.

        The same memory is the same data, however often it is registered; views of it, and other
        arrays that overlap it, share its order and content. Later tasks read what the program
        writes into the array after `wait`.

        Parameters
        ----------
        array : ndarray, or array of CuPy, PyTorch or another library
            Of any shape and any type without Python objects; if it isn't contiguous, it has one
            dimension, or two with contiguous rows or columns. An array that runs backwards, as
            x[::-1], is for tasks on the host and on emulated devices only. Tasks on the device
            where the array lies use it in place, after the work queued on its owner's stream.
        resident : bool
            Replicas on devices outlive `wait`, so that later tasks copy less. The program accesses
            the array only within `Data.on_host`; where devices have memory, it is read-only else.

        Raises
        ------
        InvalidArgument
            If it isn't an array or can't be used in place.
        """
        reference = self._known.get(id(array))
        known = None if reference is None else reference()
        if known is not None and known.is_of(array):
            if resident and not known.resident:
                raise InvalidArgument(
                    "the array is already registered, but not as resident: pass resident=True "
                    "where it is first registered"
                )
            return Data(self, known)
        found = seen(array)
        if isinstance(found, np.ma.MaskedArray):
            raise InvalidArgument("masked arrays are not supported; pass their values, a.data")
        if isinstance(found, np.ndarray):
            found = residence.opened(np.asarray(self._tasks.files.watch(found)))  # no subclass
        if not isinstance(found, (np.ndarray, DeviceArray)):
            raise InvalidArgument(
                f"expected an array, got {type(array).__name__}: a copy would hide the results"
            )
        if not self._known:
            registered.note(self)
        if isinstance(found, np.ndarray):
            layout = layout_of(found)
            core = self.core.add(layout.start_of(found), *layout.core_sizes, resident)
            writable = found.flags.writeable
            place = Place(core, layout, found, self._retired, array, writable, resident)
            self._ending.lending.lend(place, self.machine)
            self._remember(place, array)
            self._forget_retired()  # after it: what is registered again stays where it is
            return Data(self, place)
        self._forget_retired()
        layout = layout_on_device(found.shadow)
        size = (layout.rows, layout.cols, layout.ld, layout.core_dtype)
        device = device_of(self.core, found)
        if device is None:
            core = self.core.add(found.address, *size, resident)
        else:
            core = self.core.add_on_device(device, found.address, *size, resident)
            if found.stream is not None:
                self.core.follow(core, found.stream)  # tasks wait for it, this thread doesn't
        place = Place(core, layout, None, self._retired, found, found.writeable)
        return Data(self, place)

    def temporary(
        self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = float, *, keep: bool = False
    ) -> Data:
        """Create a tile without an array, on devices; it spills to the host if it must.

        Parameters
        ----------
        shape : int or tuple of int
        dtype : dtype
        keep : bool
            Keep it on devices until it is evicted or accessed.

        Raises
        ------
        TooLarge
            If there is no room for it even after all tasks have ended.
        """
        layout = layout_of_new(sizes(shape), dtype)
        core = self._tile_room.make(layout, switch("keep", keep))
        return Data(self, Place(core, layout, None, self._retired))

    # Tasks

    def submit(
        self,
        codelet: Codelet,
        *operands: Operand,
        priority: int = 0,
        device: int | str | None = None,
        **parameters: Any,
    ) -> Future:
        """Submit a task; tasks that access the same data run in the order of submission.

        Parameters
        ----------
        codelet : Codelet
        *operands : Operand or Future
            One for each mode in the codelet's `access`, such as ``a.read(), b.update()``.
        priority : int
            Larger runs earlier among ready tasks.
        device : int or str, optional
            Index or name of the device that runs it. Default: the policy chooses.
        **parameters
            The body gets them by name. Arrays, lists, tuples, dicts, sets, bytearrays and
            memoryviews are read-only copies, with what they hold, made once pending tasks on
            them have ended; Futures are replaced by their results. Others are passed as they are.

        Raises
        ------
        InvalidArgument
            If codelet, operands or device don't fit together or aren't this engine's.
        TooLarge, Unavailable
            If the operands don't fit together on any device; if no device can run the codelet; in
            a body, if another engine's task on their memory hasn't ended.
        """
        tasks = self._tasks
        if len(self._retired) >= self._many_retired:
            self._forget_retired()
        if len(tasks.pending) >= tasks.room:
            tasks.make_room()
        place = _NO_DEVICE if device is None else self._device_index(device)
        rank = 0 if priority == 0 else whole("priority", priority, -(2**31), 2**31 - 1)
        try:
            kept = parameters and frozen(parameters, tasks.files)
            record = Record(tasks.next_number(), codelet, operands, kept)
        except registered.ContentLost as lost:
            record = lacking(tasks.next_number(), codelet, operands, lost)
        if device is not None or priority:
            codelet.refuse_taken(priority=priority != 0, device=device is not None)
        if len(registered.engines) > 1:
            others.follow(tasks, record)
        core, after = codelet.core, _NONE
        if record.given is not None:
            record.given.check_engine(self.core)
            core, after = codelet.core_without(record.given.places), record.given.after
        if codelet.cuda is not None and self._has_cuda:
            record.prepare_for_cuda()
        if self._traced:
            self._codelets.add(codelet)
        result = Result()
        record.result = weakref.ref(result)
        future = Future(self, tasks, record, result)
        record.failures = tasks.failures
        try:
            tasks.pending[record.number] = record
            self.core.submit(core, record, rank, place, after)
        except BaseException:
            if record.core is None:  # else an interrupt came after it: the task is there
                tasks.pending.pop(record.number, None)
            raise
        return future

    def wait(self, timeout: float | None = None) -> None:
        """Wait until every task has ended and the arrays are current.

        `timeout` is in seconds, of simulated time under the virtual clock; None: no limit.

        Raises
        ------
        Deadline
            If the timeout passes first; the work continues.
        IoError
            If a registered array's mapped file became shorter.
        Exception
            The first failure since the last wait, with the type raised in the body; Cancelled for a
            task that did not run because of a failure raised before, unless it was waited for.
        """
        self._tasks.wait(seconds_of(timeout))
        self._forget_retired()
        self._tasks.files.check()

    def wait_data(self, data: Data, timeout: float | None = None) -> None:
        """Wait for the tasks that access the data; timeout and errors as in `wait`."""
        place, tasks = data.place, self._tasks
        with tasks.originals():
            self.core.wait_data(place.core, seconds_of(timeout), tasks.look, (place, None))

    def cancel(self) -> None:
        """Cancel tasks that haven't started and wait: arrays are current, the engine usable."""
        self.core.cancel()
        self._tasks.reap()

    def close(self) -> None:
        """End the engine and cancel tasks that haven't started; later uses raise `InvalidArgument`.

        What tasks wrote before they ended is in their arrays afterwards, unless a body calls this.
        The trace is written first if `trace` was a path, which may raise `IoError`.

        Raises
        ------
        Error
            If results could not be written back and no wait has raised why; a `RuntimeWarning`
            instead if another exception leaves the ``with`` block. The engine is closed anyway.
        """
        if not self._ending.is_due:
            return
        _ = self.machine  # what lived here tells of it afterwards
        try:
            if self._trace_path is not None:
                self.save_trace(self._trace_path)
        except BaseException:
            self._ending.end_warning()
            raise
        if (failure := self._ending.end()) is not None:
            raise failure

    # What happened

    @cached_property
    def machine(self) -> Machine:
        """The machine that the engine runs on."""
        return Machine(self.core.machine())

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.core.policy()

    def counters(self) -> Counters:
        """Totals since the engine was created, or since `reset_counters`."""
        if self._devices is None:
            self._devices = self.machine.devices
        return from_core(self.core.counters(), self._devices)

    def reset_counters(self) -> None:
        """Reset all counters to zero."""
        self.core.reset_counters()

    def status(self) -> str:
        """Text that lists the waiting tasks and what each waits for."""
        return self.core.status()

    def now(self) -> float:
        """Seconds since the engine's start, by its clock, real or virtual."""
        return self.core.now() / 1e9

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Name the ``with`` block, which a report shows above its timeline.

        Calls of `quadriga.linalg` are named already. Raises `InvalidType` if `name` isn't text.
        """
        if not isinstance(name, str):
            raise InvalidType(f"name is {name!r}; expected a str")
        if not self._traced:
            yield
            return
        begin = self.core.now()
        try:
            yield
        finally:
            if self._ending.is_due:
                self.core.section(name, begin, self.core.now())

    def trace_json(self) -> str:
        """The trace so far, as JSON; raises `Unavailable` if tracing is off."""
        return self.core.trace_json()

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the trace so far; errors as in `trace_json`, and `IoError`."""
        write_beside(path, self.trace_json())

    def __enter__(self) -> Engine:
        self._block = current.enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._block is not None:
            current.leave(self._block)
            self._block = None
        if kind is not None:
            self._ending.behind(self.close, error, leaves=not issubclass(kind, Exception))
        elif self._ending.is_due:
            with self._ending.ends_behind(self.close):
                self.wait()
            self.close()

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise InvalidType(
            "engines, their Data and Futures can't be copied or pickled; pass arrays and results"
        )

    def __repr__(self) -> str:
        if not self._ending.is_due:
            return "<Engine, closed>"
        names = ", ".join(device.name for device in self.machine.devices)
        return f"<Engine on {names}, policy {self.policy}>"

    def _repr_html_(self) -> str:
        if not self._ending.is_due:
            return "<p>Engine, closed</p>"
        return self.machine._repr_html_() + self.counters()._repr_html_()

    # Housekeeping

    def _keep_collected(self, thing: object) -> None:
        """Called before an object is freed whose end costs the engine time."""
        if isinstance(self._retired, Kept):
            self._retired.keep(thing)

    def _remember(self, place: Place, array: Any) -> None:
        known, key = self._known, id(array)

        def forget(reference: weakref.ref[Place]) -> None:
            if known.get(key) is reference:
                del known[key]

        known[key] = weakref.ref(place, forget)

    def _forget_retired(self, least: int = 1) -> None:
        """Removes released data, from so many on; not in a body, for which their tasks may wait."""
        if len(self._retired) >= least and not _core.inside_body():
            with self._ending.lending.leaves(self._retired):
                self.core.remove(self._retired)

    @cached_property
    def _tile_room(self) -> TileRoom:
        self._many_retired = 1
        least = min(each.memory_bytes for each in self.machine.devices)
        return TileRoom(self.core, self._tasks, self._forget_retired, least)

    @cached_property
    def _has_cuda(self) -> bool:
        return any(device.kind == "cuda" for device in self.machine.devices)

    def _device_index(self, device: int | str) -> int:
        return device_index(device, [each.name for each in self.machine.devices])
