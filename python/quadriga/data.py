# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/data.py: arrays that an engine knows, as tasks are given them.
"""Registered arrays, and the operands that they make."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import _core
from .arguments import seconds_of
from .codelets import Codelet, Cost
from .errors import InvalidArgument
from .foreign import DeviceArray, Registered
from .place import Place


class Owner(Protocol):
    """What data need of their engine."""

    core: _core.Engine

    def wait_data(self, data: Data, timeout: float | None = None) -> None: ...

    def submit(self, codelet: Codelet, *operands: Operand) -> Any: ...


class Operand(NamedTuple):
    """Data, and how a task touches it; made by `Data.read()` and its like."""

    data: Data
    access: str


Mode = Literal["r", "w", "rw"]
_MODES = {"r": _core.Access.read, "w": _core.Access.write, "rw": _core.Access.update}


class OnHost:
    """The host's access to an array, in a ``with`` block; made by `Data.on_host`."""

    __slots__ = ("_access", "_data", "_mode", "_seconds", "_view")

    def __init__(self, data: Data, mode: Mode, seconds: float) -> None:
        self._data = data
        self._mode = mode
        self._seconds = seconds
        self._access: _core.HostAccess | None = None
        self._view: npt.NDArray[Any] | None = None

    def __enter__(self) -> npt.NDArray[Any]:
        data = self._data
        self._access = data.engine.core.on_host(data.place.core, _MODES[self._mode], self._seconds)
        assert data.place.array is not None
        self._view = view = data.place.array.view()
        if self._mode == "r":
            view.flags.writeable = False
        return view

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._view is not None:
            self._view.flags.writeable = False
        access, self._access, self._view = self._access, None, None
        if access is not None:
            access.release()


class Data(Registered):
    """An array, or a tile without one, that tasks of an engine work on; made by `Engine.data`.

    Attributes
    ----------
    engine : Engine
        The one that it belongs to.
    """

    def __init__(self, engine: Owner, place: Place) -> None:
        self.engine = engine
        self.place = place

    @property
    def array(self) -> Any:
        """The user's array, current after `Engine.wait` or `wait`; None for a temporary.

        While a device holds newer content, or tasks may still write it, a view of it that can't be
        written.
        """
        given = self.known
        if self.place.array is None or self.engine.core.is_home(self.place.core):
            return given
        view = self.place.array.view()
        view.flags.writeable = False
        return view

    @property
    def known(self) -> Any:
        given = self.place.given
        return given.native if isinstance(given, DeviceArray) else given

    def on_host(self, mode: Mode = "r", timeout: float | None = None) -> OnHost:
        """The array, for the host to touch in a ``with`` block, beside running tasks.

        The block begins once the tasks that conflict with it have ended and the array is current;
        tasks submitted later wait for its end. It is the only way to touch `resident` arrays.

        Parameters
        ----------
        mode : {"r", "w", "rw"}
            To read it; to write all of it, whose old content isn't brought; or both.
        timeout : float, optional
            Seconds to wait for the tasks.

        Raises
        ------
        Deadline
            If the timeout passes before.
        Unavailable
            Inside of a body, or if this thread is in a block that reads it and wants to write.

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
        return self.place.layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.place.layout.dtype

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """The content, once the tasks that touch it have ended: the user's array, if that is on
        the host; else a copy.
        """
        found = self.place.array
        if found is not None:
            self.wait()
        elif copy is False:
            raise ValueError(f"{self!r} has no array on the host, so that it has to be copied")
        else:
            found, copy = self.engine.submit(_CONTENT, self.read()).result(), False
        if copy or (copy is None and dtype not in (None, found.dtype)):
            return np.array(found, dtype)
        return np.asarray(found, dtype)

    def read(self) -> Operand:
        """As an operand that is only read."""
        return Operand(self, "read")

    def write(self) -> Operand:
        """As an operand that is overwritten whole; its old content isn't brought."""
        return self._written("write")

    def update(self) -> Operand:
        """As an operand that is read and written."""
        return self._written("update")

    def commute(self) -> Operand:
        """As an operand of updates whose order among each other doesn't matter."""
        return self._written("commute")

    def reduce(self) -> Operand:
        """As an operand that tasks add to."""
        return self._written("reduce")

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the tasks that touch it have ended and the array is current."""
        self.engine.wait_data(self, timeout)

    def final(self) -> None:
        """Say that no task submitted later writes it: it goes home as soon as it may."""
        self.engine.core.final(self.place.core)

    def evict(self) -> None:
        """Drop its replicas on devices, for measurements from a cold start."""
        self.engine.core.evict(self.place.core)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Data) and self.place.core == other.place.core

    def __hash__(self) -> int:
        return hash(self.place.core)

    def _written(self, access: str) -> Operand:
        if not self.place.writable:
            raise InvalidArgument(f"the array is read-only, so no task may {access} it")
        return Operand(self, access)

    def __repr__(self) -> str:
        return f"<Data {self.place.layout.dtype} {'x'.join(map(str, self.shape))}>"


def _content(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.copy()


# Under the virtual clock it takes no time: no device does it.
_CONTENT = Codelet(_content, ["read"], name="content", cost=Cost("nothing", 1, 1))
