# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/data.py: arrays that an engine knows, as tasks are given them.
"""Registered arrays, and the operands made of them."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import _core, registered
from .arguments import seconds_of
from .codelets import Codelet, Cost
from .completion import hides
from .errors import Error, InvalidArgument, TaskFailed
from .failures import raise_kept
from .foreign import DeviceArray, Registered
from .place import Place
from .typing import Array


class Raising(Protocol):
    """Knows what bodies raised."""

    waiting: list[None]
    told: set[str]

    def look(self, awaited: Any) -> None: ...

    def original(self, error: TaskFailed) -> BaseException: ...


class Owner(Protocol):
    """The part of an engine that its data use."""

    core: _core.Engine

    @property
    def _tasks(self) -> Raising: ...

    def wait_data(self, data: Data, timeout: float | None = None) -> None: ...

    def submit(self, codelet: Codelet, *operands: Operand) -> Any: ...


class Operand(NamedTuple):
    """Data and the mode in which a task accesses it; made by `Data.read`, `write` and so on."""

    data: Data
    access: str


_operand = tuple.__new__  # as Operand(...), which takes twice as long

Mode = Literal["r", "w", "rw"]
_MODES = {"r": _core.Access.read, "w": _core.Access.write, "rw": _core.Access.update}


class OnHost:
    """The host's access to an array, in a ``with`` block; made by `Data.on_host`."""

    __slots__ = ("_access", "_among", "_data", "_mode", "_seconds", "_view")

    def __init__(self, data: Data, mode: Mode, seconds: float) -> None:
        self._data = data
        self._mode = mode
        self._seconds = seconds
        self._access: _core.HostAccess | None = None
        self._view: npt.NDArray[Any] | None = None
        self._among: list[registered.Access] = []

    @property
    def array(self) -> npt.NDArray[Any] | None:
        """The array that is accessed."""
        return self._data.place.array

    def __enter__(self) -> npt.NDArray[Any]:
        data = self._data
        core = data.engine.core
        tasks = data.engine._tasks
        if len(registered.engines) > 1 and not _core.inside_body():
            self._settle_others()
        tasks.waiting.append(None)
        try:
            place, mode = data.place, self._mode
            awaited = place, mode != "r"
            self._access = core.on_host(
                place.core, _MODES[mode], self._seconds, tasks.look, awaited
            )
        except TaskFailed as error:
            raise_kept(tasks.original(error))
        finally:
            tasks.waiting.pop()
        assert data.place.array is not None
        self._view = view = data.place.array.view()
        if self._mode == "r":
            view.flags.writeable = False
        elif place.lent is not None:
            place.lent.open()
        self._among = registered.held_here()
        self._among.append(self)
        return view

    def _settle_others(self) -> None:
        """What other engines' tasks wrote is home, and their devices keep nothing that is about to
        be written.
        """
        array = self._data.place.array
        begin, size = (0, 0) if array is None else registered.memory_of(array)
        for tasks in registered.settling(size):
            if tasks.core is not self._data.engine.core:
                tasks.settle(begin, size, self._mode != "r")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._view is not None and self._mode != "r":
            self._view.flags.writeable = False
            if self._data.place.lent is not None:
                self._data.place.lent.close()
        if self in self._among:
            self._among.remove(self)
        access, self._access, self._view = self._access, None, None
        if access is not None:
            access.release()


@hides("place")
class Data(Registered):
    """A registered array, or a tile without one; made by `Engine.data` and `Engine.temporary`.

    Two data are equal if they stand for the same memory in the same engine.

    Attributes
    ----------
    engine : Engine
        The engine that it belongs to.
    """

    def __init__(self, engine: Owner, place: Place) -> None:
        self.engine = engine
        self.place = place

    @property
    def array(self) -> Array | None:
        """The user's array, current after `Engine.wait` or `wait`; None for a temporary.

        A read-only view while a device holds newer content or tasks may still write the array.
        """
        given = self.known
        if self.place.array is None or self.engine.core.is_home(self.place.core):
            return given
        view = self.place.array.view()
        view.flags.writeable = False
        return view

    @property
    def known(self) -> Array | None:
        """The array as registered, whether or not it is current; None for a temporary."""
        given: Any = self.place.given
        found: Array | None = given.native if isinstance(given, DeviceArray) else given
        return found

    def on_host(self, mode: Mode = "r", timeout: float | None = None) -> OnHost:
        """The array, for access by the host in a ``with`` block, while other tasks run.

        The block starts once the tasks that conflict with it have ended and the array is current;
        conflicting tasks submitted later wait for its end. The host must access `resident` arrays
        this way, which are read-only else where devices have memory of their own.

        Parameters
        ----------
        mode : {"r", "w", "rw"}
            Read the array, overwrite all of it (its old content isn't copied), or update it.
        timeout : float, optional
            Seconds to wait for the tasks. Default: no limit.

        Returns
        -------
        context manager
            Its value is a view of the array, read-only in mode ``"r"`` and after the block.

        Raises
        ------
        InvalidArgument
            For another mode, without an array on the host, or to write one that is read-only.
        Deadline
            If the timeout passes first.
        Unavailable
            Inside a body, or to write an array that this thread reads in an enclosing block; or,
            without a timeout, in a thread that a body joins, if it would wait for that body.
        Exception
            The exception of the task that should have written the content.

        Examples
        --------
        >>> import numpy as np, quadriga
        >>> @quadriga.codelet(access=["update"])
        ... def double(x):
        ...     x *= 2
        >>> with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        ...     x = engine.data(np.ones(3), resident=True)
        ...     _ = engine.submit(double, x.update())
        ...     with x.on_host("rw") as array:
        ...         array += 1
        ...     _ = engine.submit(double, x.update())
        >>> x.known
        array([6., 6., 6.])
        """
        if mode not in _MODES:
            raise InvalidArgument(f"mode is {mode!r}; expected 'r', 'w' or 'rw'")
        if self.place.array is None:
            raise InvalidArgument(f"{self!r} has no array on the host")
        if mode != "r" and not self.place.writable:
            raise InvalidArgument("the array is read-only, so on_host can't write it")
        return OnHost(self, mode, seconds_of(timeout))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array or tile."""
        return self.place.layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        return self.place.layout.dtype

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """The content, once the tasks that access it have ended: the user's array if it is on
        the host, else a copy. Raises ValueError if `copy` is False and a copy is needed.
        """
        found = self.place.array
        if found is not None:
            self.wait()
            if self.place.lent is not None:
                found = np.asarray(self.place.given)  # which the program can't write
        elif copy is False:
            raise ValueError(f"{self!r} has no array on the host, so that it has to be copied")
        else:
            found, copy = self._content(), False
        if copy or (copy is None and dtype not in (None, found.dtype)):
            return np.array(found, dtype)
        return np.asarray(found, dtype)

    def _content(self) -> npt.NDArray[Any]:
        """A copy of what tasks have written; what keeps it from being made is raised here alone."""
        try:
            found: npt.NDArray[Any] = self.engine.submit(_CONTENT, self.read()).result()
        except Error as error:
            self.engine._tasks.told.add(str(error))
            raise
        return found

    def read(self) -> Operand:
        """Make an operand that the task only reads."""
        return _operand(Operand, (self, "read"))

    def write(self) -> Operand:
        """Make an operand that the task overwrites entirely; its old content isn't copied.

        This and the modes below raise `InvalidArgument` if the array is read-only.
        """
        return self._written("write")

    def update(self) -> Operand:
        """Make an operand that the task reads and writes."""
        return self._written("update")

    def commute(self) -> Operand:
        """Make an operand that the task updates, in any order among tasks that commute on it."""
        return self._written("commute")

    def reduce(self) -> Operand:
        """Make an operand that the task adds to, in any order among tasks that reduce into it."""
        return self._written("reduce")

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the tasks that access it have ended and the array is current.

        `timeout` is in seconds; raises `Deadline` if it passes first, or the tasks' failure.
        Raises `Unavailable` instead of waiting without end for a body that joins this thread.
        """
        self.engine.wait_data(self, timeout)

    def final(self) -> None:
        """Declare that no later task writes the data, so that they are written back early."""
        self.engine.core.final(self.place.core)

    def evict(self) -> None:
        """Drop replicas on devices if the array is current, to measure with cold devices."""
        self.engine.core.evict(self.place.core)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Data) and self.place.core == other.place.core

    def __hash__(self) -> int:
        return hash(self.place.core)

    def _written(self, access: str) -> Operand:
        if not self.place.writable:
            raise InvalidArgument(f"the array is read-only, so no task may {access} it")
        return _operand(Operand, (self, access))

    def __repr__(self) -> str:
        return f"<Data {self.place.layout.dtype} {'x'.join(map(str, self.shape))}>"


def _content(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.copy()


# Under the virtual clock it takes no time: no device does it.
_CONTENT = Codelet(_content, ["read"], name="content", cost=Cost("nothing", 1, 1))
