# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/circles.py: threads that wait for a task whose body waits for them.
"""A body may start a thread, or give work to one, and wait for it. If that thread waits for the
body's own task, or for one that follows it, neither ends.

Whom a thread joins, or whose `concurrent.futures.Future` it waits for, is read from its stack.
Waits by other means, as by an `Event`, and those with a timeout aren't seen.
"""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.thread
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

from .errors import Unavailable
from .record import Record

_JOIN = threading.Thread.join.__code__
_WAITS = {
    concurrent.futures.Future.result.__code__,
    concurrent.futures.Future.exception.__code__,
}
_shares_memory: Any = np.shares_memory  # whose stubs know no other limit than none
_WORK = concurrent.futures.thread._WorkItem.run.__code__  # of a pool's thread


def refuse(
    pending: dict[int, Record],
    has_ended: Callable[[Record], bool],
    awaited: Callable[[Record], bool],
) -> None:
    """Raise if a body waits for this thread, which waits for the body's task or what follows it.

    Parameters
    ----------
    pending : dict of int to Record
        The engine's tasks, by their numbers in order of submission.
    has_ended : callable
        Whether one has ended.
    awaited : callable
        Whether this thread waits for one.

    Raises
    ------
    Unavailable
    """
    waiting = _waiting_for(threading.get_ident())
    if not waiting:
        return
    in_order = sorted(pending.values(), key=lambda record: record.number)
    tasks = [each for each in in_order if each.core is not None and not has_ended(each)]
    for body in tasks:
        if body.thread not in waiting:
            continue
        following = _following(body, tasks)
        if any(awaited(each) for each in following):
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


def _following(task: Record, tasks: list[Record]) -> list[Record]:
    """A task, and those that can't start before it has ended."""
    found = [task]
    touched = _Touched()
    touched.add(task)
    for each in tasks:
        if each.number > task.number and touched.keeps(each):
            found.append(each)
            touched.add(each)
    return found


class _Touched:
    """What some tasks read and write, each place once."""

    def __init__(self) -> None:
        self._tasks: set[int] = set()  # by identity
        self._places: dict[int, tuple[Any, bool]] = {}  # by identity; whether one writes it
        self._shared: dict[tuple[int, int], bool] = {}

    def add(self, task: Record) -> None:
        self._tasks.add(id(task))
        for place, mode in zip(task.places, task.access, strict=False):
            writes = mode != "read" or self._places.get(id(place), (None, False))[1]
            self._places[id(place)] = (place, writes)

    def keeps(self, task: Record) -> bool:
        """Whether a later task waits for one of them."""
        if task.given is not None and any(id(each) in self._tasks for each in task.given.producers):
            return True
        return any(
            (mode != "read" or writes) and self._share(place, other)
            for place, mode in zip(task.places, task.access, strict=False)
            for other, writes in self._places.values()
        )

    def _share(self, one: Any, other: Any) -> bool:
        if one is other:
            return True
        if one.array is None or other.array is None:
            return False
        key = id(one), id(other)
        if key not in self._shared:
            self._shared[key] = _overlap(one.array, other.array)
        return self._shared[key]


def _overlap(one: Any, other: Any) -> bool:
    """Whether two arrays have an element in common; what takes long to find out counts as no."""
    try:
        return bool(_shares_memory(one, other, max_work=1000))
    except np.exceptions.TooHardError:
        return False
