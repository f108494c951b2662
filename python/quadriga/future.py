# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/future.py: a submitted task, as its caller sees it.
"""Futures: whether a task has ended, and with which result."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from typing import Any

from .arguments import seconds_of
from .errors import Error
from .given import Promised, Result
from .record import Record
from .tasks import Tasks
from .waiters import Waiters
from .watcher import watch

_making = threading.Lock()


class Future(Promised):
    """A task that was submitted; made by `Engine.submit`.

    It can be awaited, waited for by ``concurrent.futures.wait`` and ``as_completed``, and passed to
    later tasks as a read operand or a parameter; they get its result.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> total = quadriga.codelet(access=["read"], name="total")(np.sum)
    >>> with quadriga.Engine("cpu:1") as engine:
    ...     future = engine.submit(total, engine.data(np.ones(4)).read())
    ...     float(future.result(timeout=10))
    4.0
    """

    __slots__ = ("__weakref__", "_engine", "_waited")

    _record: Record
    _tasks: Tasks

    def __init__(self, engine: object, tasks: Tasks, record: Record, result: Result) -> None:
        self._engine = engine  # works for as long as this is held
        self._tasks = tasks
        self._record = record
        self._result = result

    @property
    def id(self) -> int:
        """The task's number in order of submission, as in traces and errors."""
        return self._record.id

    def done(self) -> bool:
        """Whether the task has ended: done, failed or cancelled. Its arrays may be on devices."""
        return self._tasks.ended(self._record)

    def running(self) -> bool:
        """Whether the Python body, or callable for CUDA devices, has begun and the task goes on."""
        return self._record.started and not self.done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The task's failure, once it has ended; None if it succeeded.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait. Default: no limit.

        Raises
        ------
        Deadline
            If the timeout passes first; the task continues.
        """
        error = self._tasks.outcome(self._record, seconds_of(timeout))
        try:
            self._tasks.bring_home(-1.0)  # the task has ended: copies are all that is waited for
        except Error:
            if error is None:
                raise
        return error

    def result(self, timeout: float | None = None) -> Any:
        """What the body returned, once the task has ended.

        Arrays that no pending task accesses are current then, and later tasks read what the
        program writes into them, as after `Engine.wait`; so it is after `exception`, ``await`` and
        in callbacks, but not after `done` nor in a body. `resident` arrays stay on devices.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait. Default: no limit.

        Raises
        ------
        Deadline
            If the timeout passes first; the task continues.
        Cancelled
            If the task was cancelled, or one that it depends on failed.
        Unavailable
            If the task waits for this thread to leave `Data.on_host`; it stays as it is.
        Exception
            What the body raised.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._result.for_program()

    def cancel(self) -> bool:
        """Cancel the task if its Python body hasn't started, and the tasks that depend on it.

        Returns
        -------
        bool
            Whether it is cancelled: then `result` raises `Cancelled`, and `Engine.wait` doesn't.
        """
        return self.cancelled() or (not self.done() and self._record.withdraw())

    def cancelled(self) -> bool:
        """Whether `cancel` succeeded."""
        return self._record.withdrawn is not None

    def add_done_callback(self, callback: Callable[[Future], object]) -> None:
        """Call a function with this future once the task has ended; at once if it has.

        Otherwise a separate thread calls the function later. Its exceptions go to the logger
        "quadriga". Under the virtual clock tasks run only while a thread waits.
        """
        watch(self, lambda future: callback(future._came_home()))

    def _failure(self) -> BaseException | None:
        """Of a task that has ended, whose arrays stay where they are."""
        return self._tasks.outcome(self._record, -1.0)

    def _came_home(self) -> Future:
        """This, once its arrays are the program's; what keeps them from coming `wait` raises."""
        if not self._tasks.is_driven_by_waits:  # else only who waits may let time pass
            with contextlib.suppress(Error):
                self._tasks.bring_home(-1.0)
        return self

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio  # here, for few need it and it takes a while

        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        def tell(_: Future) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(end)

        self.add_done_callback(tell)
        if self._tasks.is_driven_by_waits:
            self.exception()
        try:
            yield from ended
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self._tasks.is_driven_by_waits:
            return self.result()
        error = self._failure()  # its arrays came home before the callback
        if error is not None:
            raise error
        return self._result.for_program()

    # For the module concurrent.futures, which takes these of its own futures.

    @property
    def _waiters_here(self) -> Waiters:
        found = getattr(self, "_waited", None)
        if found is None:
            with _making:
                found = getattr(self, "_waited", None)
                is_first = found is None
                if found is None:
                    found = self._waited = Waiters()
            if is_first:  # without the lock: one that has ended may wait for its copies
                found.watch(self)
            if self._tasks.is_driven_by_waits:
                self.exception()
        return found

    @property
    def _condition(self) -> threading.Condition:
        return self._waiters_here.condition

    @property
    def _state(self) -> str:
        return self._waiters_here.state

    @property
    def _waiters(self) -> list[Any]:
        return self._waiters_here.waiters

    def __repr__(self) -> str:
        state = "not ended"
        if self.cancelled():
            state = "cancelled"
        elif self.done():
            state = "ended"
        elif self.running():
            state = "running"
        return f"<Future of {self._record.codelet.name!r}, task {self.id}, {state}>"
