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
from collections.abc import Callable, Iterable, Iterator
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
_WORK = concurrent.futures.thread._WorkItem.run.__code__  # of a pool's thread


def refuse(
    pending: Iterable[Record],
    has_ended: Callable[[Record], bool],
    awaited: Callable[[Record], bool],
) -> None:
    """Raise if a body waits for this thread, which waits for the body's task or what follows it.

    Parameters
    ----------
    pending : iterable of Record
        The engine's tasks, in order of submission.
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
    tasks = [each for each in pending if each.core is not None and not has_ended(each)]
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
    for each in tasks:
        if each.number > task.number and any(_conflict(each, before) for before in found):
            found.append(each)
    return found


def _conflict(one: Record, other: Record) -> bool:
    if one.given is not None and any(each is other for each in one.given.producers):
        return True
    return any(
        (mine != "read" or its != "read") and _share(place, another)
        for place, mine in zip(one.places, one.access, strict=True)
        for another, its in zip(other.places, other.access, strict=True)
    )


def _share(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if one.array is None or other.array is None:
        return False
    return np.may_share_memory(one.array, other.array)
