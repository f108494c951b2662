# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/tasks.py: an engine's pending tasks, and how tasks ended.
"""Keeps alive what running tasks need, and finds the Python exception of a failure."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from types import TracebackType
from typing import Any

from . import _core, circles, mapped, registered
from .errors import (
    Cancelled,
    Deadline,
    Error,
    IoError,
    TaskFailed,
    Unavailable,
)
from .failures import Failures, add_note, is_asked, raise_kept
from .parameters import leaves
from .place import Place
from .record import Record

_OFTEN = 1024  # tasks between two looks at which have ended


class Tasks:
    """What was submitted. Any thread may call anything: steps on `pending` are atomic each."""

    def __init__(self, core: _core.Engine, is_driven_by_waits: bool) -> None:
        self.core = core
        self.is_driven_by_waits = is_driven_by_waits  # as under the virtual clock
        self.failures = Failures()
        self.files = mapped.Files()  # of registered arrays
        self.pending: dict[int, Record] = {}
        self.closed = False
        self._most = max(1, core.window() * 3 // 4)
        self.room = min(_OFTEN, self._most)  # so many may be pending before make_room()
        self._unasked: list[Record] = []  # ended, and only the engine knows how
        self._prune_at = _OFTEN
        self._numbers = itertools.count(1)
        self._last = 0  # number that was given
        self.told: set[str] = set()  # failures that a call has raised, so that wait() doesn't
        self.waiting: list[None] = []  # one for each thread that may look up a failure

    def next_number(self) -> int:
        """A number for a task that is about to be submitted."""
        number = self._last = next(self._numbers)
        return number

    def make_room(self) -> None:
        """Keeps the window from filling up, so that submitting blocks where signals are seen."""
        if len(self.pending) < self.room:
            return
        self.reap()
        # What a body waits for may wait for the body: its tasks go beyond the window.
        if len(self.pending) >= self._most and not _core.inside_body():
            self.wait_for_half()
            self.reap()
        self.room = min(max(_OFTEN, 2 * len(self.pending)), self._most)

    def wait_for_half(self) -> None:
        """Wait until the older half of the pending tasks has ended, whatever it fails with."""
        numbers = list(self.pending)
        for number in numbers[len(numbers) // 2 :]:
            record = self.pending.get(number)
            if record is not None and record.core is not None:
                # What it failed with is kept for wait(). What this thread must not wait for, as it
                # follows the thread's own access on the host, goes beyond the window.
                with contextlib.suppress(Unavailable):
                    self.outcome(record, -1.0)
                return

    def reap(self) -> None:
        """Release what ended tasks needed; their futures keep how they ended."""
        done = self.core.done
        for record in list(self.pending.values()):
            core = record.core
            if core is None or not done(core):
                continue  # it runs, or somebody is about to submit it
            if record.is_watched and not self.is_driven_by_waits:
                self.outcome(record, -1.0)
            elif record.is_watched:  # asking would wait for whoever drives
                self._keep_for_end(record)
            record.drop()  # what it held is released, or it is pending
            self.pending.pop(record.number, None)

    def end(self) -> None:
        """Record in each future how its task ended; all have, and the engine is about to."""
        self.reap()
        for record in self._unasked:
            if record.is_watched:
                self.outcome(record, -1.0)
        self._unasked.clear()

    def _keep_for_end(self, record: Record) -> None:
        self._unasked.append(record)
        if len(self._unasked) >= self._prune_at:
            self._unasked = [each for each in self._unasked if each.is_watched]
            self._prune_at = max(_OFTEN, 2 * len(self._unasked))

    def ended(self, record: Record) -> bool:
        """Whether a task has ended, or never will."""
        return record.settled or self.closed or self.core.done(record.submitted)

    def outcome(self, record: Record, seconds: float) -> BaseException | None:
        """A task's failure, once it has ended; None if it succeeded.

        Raises
        ------
        Deadline
            If the seconds pass first.
        """
        if not record.settled:
            error: BaseException | None = None
            try:
                if self.closed:
                    raise Cancelled(f"task {record.id}: its engine was closed before it ended")
                self.core.wait_task(record.submitted, seconds, self.look, record)
            except Deadline as late:
                if not late.of_task:
                    raise  # a body's own comes as what a task failed with
                error = late.with_traceback(None)
            except Error as failure:
                if not self.closed and not self.core.done(record.submitted):
                    raise  # it says why there is no waiting for the task, not how that ended
                error = failure.with_traceback(None)  # it would keep the frames of who waits
                error.__dict__.pop("named", None)  # the record has what its body raised
            # Cancelled by the engine: what its body raised came of what another had left.
            if not isinstance(error, Cancelled):
                error = record.exception or error or self._read_wrong(record)
            record.settle(error)
            if not self.closed:  # else nobody waited for its end
                record.drop()
                self.pending.pop(record.number, None)
        return record.error

    def _read_wrong(self, record: Record) -> IoError | None:
        """Names a mapped file that became shorter, if the task was given it or nobody is."""
        if not mapped.is_used():
            return None
        arrays = (place.array for place in record.places)
        error = mapped.failure_of(itertools.chain(arrays, leaves(record.parameters.values())))
        return error or mapped.unclaimed()

    def bring_home(self, seconds: float) -> None:
        """What ended tasks left on devices, for whoever knows that a task has ended."""
        try:
            if not self.closed:
                self.core.bring_ended_home(seconds)
        except Error:
            if not self.closed:  # else all came home with its end
                raise

    def wait(self, seconds: float) -> None:
        """Wait for all tasks; raises the first failure since the last wait."""
        last = self._last
        self.waiting.append(None)
        try:
            self._wait(seconds)
        except (Deadline, Unavailable, KeyboardInterrupt):
            last = 0  # what failed may not have been named
            raise
        finally:
            self.waiting.pop()
            if not self.waiting:  # else another thread may hold a number and look it up
                self.failures.forget(last)
                if last:
                    self.told.clear()

    def _wait(self, seconds: float) -> None:
        try:
            self.core.wait(seconds, self.look)
        except Deadline:
            raise
        except Error as error:  # of a body, of the runtime itself, or of a message
            self.reap()
            raised: BaseException | None = (
                self.original(error) if isinstance(error, TaskFailed) else error
            )
            if is_asked(raised) or str(error) in self.told:
                raised = self.failures.take_next()
            if raised is not None:
                raise_kept(raised)
        self.reap()

    def settle(
        self,
        address: int,
        size: int,
        writes: bool,
        look: Callable[[object], None] | None = None,
    ) -> bool:
        """Wait for the tasks that touch some memory; it is current afterwards.

        False if none of it is registered. `look` is called instead of `self.look`.
        """
        with self.originals():
            return self.core.settle(address, size, writes, look or self.look)

    def settle_for_task(self, address: int, size: int) -> tuple[int, str] | None:
        """The same for a later task, which reads it; the one that should have written it if that
        failed, and why."""
        with self.originals():
            return self.core.settle_for_task(address, size, self.look)

    def look(self, awaited: Any) -> None:
        """Refuses to wait for a body that waits for this thread; called by waits without end.

        They wait for all tasks, for a record, for memory as `settle` is given it, or for a place
        and whether to write it; None: for all that access it.
        """

        def is_awaited(tasks: list[Record]) -> bool:
            return awaited is None or any(each is awaited for each in tasks)

        def shares(place: Place) -> bool:
            if len(awaited) == 2:
                return circles.share(place, awaited[0])
            if place.array is None:
                return False
            begin: int
            size: int
            begin, size, _ = awaited
            first, length = registered.memory_of(place.array)
            return first < begin + size and begin < first + length

        is_memory = isinstance(awaited, tuple)
        asked = circles.Memory(self.core, shares, awaited[-1]) if is_memory else is_awaited
        circles.refuse(self.core, self.pending, asked)

    def originals(self) -> Originals:
        """A ``with`` block that raises a body's own exception instead of `TaskFailed`."""
        return Originals(self)

    def original(self, error: TaskFailed) -> BaseException:
        """The exception of the body that failed, if it was one in Python."""
        found = self.failures.take(getattr(error, "record", 0))
        error.__dict__.pop("named", None)  # an error that the caller gets can be pickled
        if found is None:
            return error
        add_note(found, str(error).split(" failed: ", 1)[0])
        return found


class Originals:
    """A ``with`` block that waits for tasks; raises what their bodies raised."""

    __slots__ = ("_tasks",)

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def __enter__(self) -> None:
        self._tasks.waiting.append(None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if isinstance(error, TaskFailed):
                raise_kept(self._tasks.original(error))
        finally:
            self._tasks.waiting.pop()
