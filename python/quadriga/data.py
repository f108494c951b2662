# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/data.py: arrays that an engine knows, and tasks that it was given.
"""Registered arrays and futures."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from . import _core
from .arguments import seconds_of
from .codelets import Operand, Record
from .errors import Deadline, Error, InvalidArgument
from .foreign import DeviceArray
from .layout import Array, Layout

if TYPE_CHECKING:
    from .engine import Engine


#: Data that nobody holds any more, and the arrays that they still may be written to.
Retired = deque[tuple[_core.Data, Any]]


class Place:
    """A registered tile, without its engine: what tasks that are not done hold.

    Whoever lets it go last puts it on the engine's list of data to remove, with its array, which
    the engine may still write to until then.
    """

    __slots__ = (
        "_address", "_frozen", "_retired", "array", "core", "given", "layout", "writable",
    )  # fmt: skip

    def __init__(
        self,
        core: _core.Data,
        layout: Layout,
        array: Array | None,
        retired: Retired,
        given: Any = None,
        writable: bool = True,
    ) -> None:
        self.core = core
        self.layout = layout
        self.array = array  # On the host; None for what lies on a device, or nowhere.
        self.given = array if given is None else given
        self.writable = writable
        self._address = array.ctypes.data if array is not None else None
        self._frozen: Array | None = None
        self._retired = retired

    def view(self, address: int, ld: int, access: str) -> Array:
        """The view that a body gets of the tile at an address; the array itself if it is there."""
        if address != self._address:
            return self.layout.view(address, ld, access != "read")
        assert self.array is not None
        if access != "read":
            return self.array
        if self._frozen is None:
            self._frozen = self.array.view()
            self._frozen.flags.writeable = False
        return self._frozen

    def __del__(self) -> None:
        self._retired.append((self.core, self.given))


class Data:
    """An array, or a tile without one, that tasks of an engine work on; made by `Engine.data`.

    Attributes
    ----------
    engine : Engine
        The one that it belongs to.
    """

    def __init__(self, engine: Engine, place: Place) -> None:
        self.engine = engine
        self.place = place

    @property
    def array(self) -> Any:
        """The user's array, current after `Engine.wait` or `wait`; None for a temporary."""
        given = self.place.given
        return given.native if isinstance(given, DeviceArray) else given

    @property
    def shape(self) -> tuple[int, ...]:
        return self.place.layout.shape

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

    def done(self) -> None:
        """Say that no task submitted later writes it: it goes home as soon as it may."""
        self.engine.core.final(self.place.core)

    def evict(self) -> None:
        """Drop its replicas on devices, for measurements from a cold start."""
        self.engine.core.evict(self.place.core)

    def _written(self, access: str) -> Operand:
        if not self.place.writable:
            raise InvalidArgument(f"the array is read-only, so no task may {access} it")
        return Operand(self, access)

    def __repr__(self) -> str:
        return f"<Data {self.place.layout.dtype} {'x'.join(map(str, self.shape))}>"


class Future:
    """A task that was submitted.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> total = quadriga.codelet(access=["read"], name="total")(np.sum)
    >>> with quadriga.Engine("cpu:1") as engine:
    ...     future = engine.submit(total, engine.data(np.ones(4)).read())
    ...     float(future.result(timeout=10))
    4.0
    """

    def __init__(self, engine: Engine, record: Record):
        self._engine = engine
        self._record = record
        self._error: BaseException | None = None
        self._settled = False

    @property
    def id(self) -> int:
        """The task's number in order of submission, as in traces and errors."""
        assert self._record.core is not None
        return self._record.core.id

    def done(self) -> bool:
        """Whether the task has ended, well or not."""
        return self._settled or self._engine.ended(self._record)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the task failed with, once it has ended; None if it ended well.

        Raises
        ------
        Deadline
            If the timeout passes before; the task goes on.
        """
        if not self._settled:
            try:
                self._engine.wait_task(self._record, seconds_of(timeout))
            except Deadline as error:
                if self._record.exception is not error:
                    raise
                self._error = error
            except Exception as error:
                if isinstance(error, Error) or error is self._record.exception:
                    self._error = error
                else:
                    raise
            self._settled = True
        return self._error

    def result(self, timeout: float | None = None) -> Any:
        """What the body returned, once the task has ended; raises what it raised."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._record.value

    def __repr__(self) -> str:
        state = "ended" if self.done() else "not ended"
        return f"<Future of {self._record.codelet.name!r}, task {self.id}, {state}>"
