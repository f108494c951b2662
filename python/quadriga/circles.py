# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/circles.py: threads that wait for a task whose body waits for them.
"""A body may start a thread, or give work to one, and wait for it. If that thread waits for the
body's own task, or for one that follows it, neither ends.

Whom a thread joins, or whose `concurrent.futures.Future` it waits for, is read from its stack.
Waits by other means, as by an `Event`, aren't seen: whoever refers to one may set it. Those with a
timeout end by themselves, on either side, and are left alone.

What a thread waits for must really follow the body. With renaming, a task that overwrites an array
needn't follow those before it: then only the newest content's writer counts, as the engine knows
it. What follows a renamed content that was updated since isn't seen.
"""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.thread
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .errors import Unavailable

if TYPE_CHECKING:
    from .place import Place
    from .record import Record

_JOIN = threading.Thread.join.__code__
_WAITS = {
    concurrent.futures.Future.result.__code__,
    concurrent.futures.Future.exception.__code__,
}
_shares_memory: Any = np.shares_memory  # whose stubs know no other limit than none
_WORK = concurrent.futures.thread._WorkItem.run.__code__  # of a pool's thread


class Memory:
    """A thread's wait until it may access the memory of some place.

    Parameters
    ----------
    core : Engine
    shares : callable
        Whether a place has some of the memory.
    writes : bool or None
        Whether it is to be written: then who reads it is waited for as well; None: it is for every
        task that accesses it, those of old contents included.
    """

    def __init__(
        self, core: _core.Engine, shares: Callable[[Place], bool], writes: bool | None
    ) -> None:
        self._core = core
        self._shares = shares
        self._writes = writes

    def __call__(self, tasks: list[Record]) -> bool:
        """Whether it waits for one of some tasks."""
        numbers = {each.id for each in tasks}
        return any(
            self._shares(place) and self._follows(place, mode, numbers)
            for each in tasks
            for place, mode in zip(each.places, each.access, strict=False)
        )

    def _follows(self, place: Place, mode: str, numbers: set[int]) -> bool:
        if self._writes is None:
            return True
        if self._core.has_names(place.core):
            access = _core.Access.update if self._writes else _core.Access.read
            return not numbers.isdisjoint(self._core.before_host(place.core, access))
        return self._writes or mode != "read"


def refuse(
    core: _core.Engine, pending: dict[int, Record], awaited: Callable[[list[Record]], bool]
) -> None:
    """Raise if a body waits for this thread, which waits for the body's task or what follows it.

    Parameters
    ----------
    core : Engine
    pending : dict of int to Record
        Its tasks, by their numbers in order of submission.
    awaited : callable
        Whether this thread waits for one of some tasks.

    Raises
    ------
    Unavailable
    """
    waiting = _waiting_for(threading.get_ident())
    if not waiting:
        return
    in_order = sorted(pending.values(), key=lambda record: record.number)
    tasks = [each for each in in_order if each.core is not None and not core.done(each.core)]
    for body in tasks:
        if body.thread not in waiting:
            continue
        if awaited(_following(core, body, tasks)):
            raise Unavailable(
                f"this thread waits for task {body.id} '{body.codelet.name}', whose body waits for "
                "this thread: neither would end; do it in the body itself, or give the thread a "
                "copy of the body's operand"
            )


def is_awaited(
    thread: int, pending: dict[int, Record], has_ended: Callable[[Record], bool]
) -> bool:
    """Whether the body of a pending task waits for a thread."""
    waiting = _waiting_for(thread)
    return any(
        each.core is not None and each.thread in waiting and not has_ended(each)
        for each in (list(pending.values()) if waiting else ())
    )


def _waiting_for(thread: int) -> set[int]:
    """The threads that wait for one, or for another that does, without a timeout."""
    stacks = {each: list(_stack(frame)) for each, frame in sys._current_frames().items()}
    ends = {each: _what_ends_with(each, stack) for each, stack in stacks.items()}
    found: set[int] = set()
    ended = list(ends.get(thread, ()))
    while ended:
        one = ended.pop()
        for each, stack in stacks.items():
            if each not in found and each != thread and any(_waits(frame, one) for frame in stack):
                found.add(each)
                ended += ends[each]
    return found


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if frame.f_code is _JOIN or frame.f_code in _WAITS or frame.f_code is _WORK:
            yield frame
        frame = frame.f_back


def _what_ends_with(thread: int, stack: list[FrameType]) -> list[Any]:
    """What others can wait for: the thread, and the work that it was given."""
    own: list[Any] = [each for each in threading.enumerate() if each.ident == thread]
    return own + [each.f_locals["self"].future for each in stack if each.f_code is _WORK]


def _waits(frame: FrameType, awaited: Any) -> bool:
    if frame.f_code is _WORK:
        return False
    found = frame.f_locals
    return found.get("self") is awaited and found.get("timeout") is None


def _following(core: _core.Engine, task: Record, tasks: list[Record]) -> list[Record]:
    """A task, and those that can't start before it has ended."""
    found = [task]
    touched = _Touched(core)
    touched.add(task)
    for each in tasks:
        if each.number > task.number and touched.keeps(each):
            found.append(each)
            touched.add(each)
    return found


class _Touched:
    """What some tasks read and write, each place once."""

    def __init__(self, core: _core.Engine) -> None:
        self._core = core
        self._tasks: set[int] = set()  # by identity
        self._numbers: set[int] = set()  # the engine's
        self._places: dict[int, tuple[Any, bool]] = {}  # by identity; whether one writes it
        self._shared: dict[tuple[int, int], bool] = {}

    def add(self, task: Record) -> None:
        self._tasks.add(id(task))
        self._numbers.add(task.id)
        for place, mode in zip(task.places, task.access, strict=False):
            writes = mode != "read" or self._places.get(id(place), (None, False))[1]
            self._places[id(place)] = (place, writes)

    def keeps(self, task: Record) -> bool:
        """Whether a later task waits for one of them."""
        if task.given is not None and any(id(each) in self._tasks for each in task.given.producers):
            return True
        return any(
            (mode != "read" or writes) and self._share(place, other) and self._orders(place)
            for place, mode in zip(task.places, task.access, strict=False)
            for other, writes in self._places.values()
        )

    def _orders(self, place: Place) -> bool:
        """Whether accesses to it follow each other, or those to the newest content one of these
        tasks, which made it before any later one was submitted."""
        if not self._core.has_names(place.core):
            return True
        return self._core.newest_writer(place.core) in self._numbers

    def _share(self, one: Place, other: Place) -> bool:
        key = id(one), id(other)
        if key not in self._shared:
            self._shared[key] = share(one, other)
        return self._shared[key]


def share(one: Place, other: Place) -> bool:
    """Whether two places have memory in common."""
    if one is other or one.core == other.core:
        return True
    return one.array is not None and other.array is not None and _overlap(one.array, other.array)


def _overlap(one: Any, other: Any) -> bool:
    """Whether two arrays have an element in common; what takes long to find out counts as no."""
    try:
        return bool(_shares_memory(one, other, max_work=1000))
    except np.exceptions.TooHardError:
        return False
