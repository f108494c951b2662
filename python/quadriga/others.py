# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/others.py: order between tasks of several engines of a process.
"""A task on memory that other engines know is submitted once their tasks there have ended.

Invariants
  1. A wait is for tasks that were submitted before, as a read on the host is, and holds no lock. So
     two threads that submit to two engines never wait for each other.
  2. A body waits for nothing: tasks may wait for its end. What the task of a body accesses is the
     body's to pass on; where a task of another engine is in the way, the submission is refused.
"""

from __future__ import annotations

import threading

from . import _core, registered
from .errors import Unavailable
from .place import Place
from .record import Record


def follow(own: registered.Tasks, record: Record) -> None:
    """Wait until no other engine's task conflicts with a new one, and what they wrote is home.

    Raises
    ------
    Unavailable
        In a body, instead of waiting.
    Exception
        What a task failed with that should have written the memory.
    """
    inside = _core.inside_body()
    for tasks in registered.settling(1):
        if tasks is own:
            continue
        for place, mode in zip(record.places, record.access, strict=False):
            begin, size = _memory_of(place)
            if size == 0:
                continue
            if not inside:
                tasks.settle(begin, size, mode != "read")
            elif (found := _in_the_way(tasks, begin, size, mode)) is not None:
                raise Unavailable(
                    f"a body submits a task on an array of {place.layout.dtype} "
                    f"{'x'.join(map(str, place.layout.shape))}, in whose memory task {found.id} "
                    f"'{found.codelet.name}' of another engine hasn't ended, and a body doesn't "
                    "wait for that: wait there before the body's task is submitted"
                )


def _memory_of(place: Place) -> tuple[int, int]:
    if place.given is None:
        return 0, 0  # a temporary is its engine's own
    return registered.memory_of(place.given if place.array is None else place.array)


def _in_the_way(tasks: registered.Tasks, begin: int, size: int, mode: str) -> Record | None:
    """A task that conflicts with an access; none if this thread is in the body of one."""
    here, found = threading.get_ident(), None
    for record in list(tasks.pending.values()):
        if record.core is None or tasks.ended(record):
            continue
        for place, other in zip(record.places, record.access, strict=False):
            first, length = _memory_of(place)
            if first < begin + size and begin < first + length:
                if record.thread == here:
                    return None
                if mode != "read" or other != "read":
                    found = record
    return found
