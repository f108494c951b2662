# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/tile_room.py: room for tiles without an array, of which many are soon dropped.
"""Temporaries that a program has dropped keep their memory until their tasks have ended and the
engine removes them. A program that makes many before it waits would fill all memory with them.

They are looked for each time that tiles of a quarter of the room were made: removed if their tasks
have ended; otherwise half of the pending tasks are waited for, if some hold tiles that nobody else
holds. At most about half of the room is in such tiles.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from . import _core
from .device_arrays import bytes_of
from .errors import TooLarge
from .layout import Layout
from .tasks import Tasks

_PAUSE = 1e-3  # seconds


class TileRoom:
    """Makes tiles; any thread may call it, since being late by one tile does no harm."""

    def __init__(
        self, core: _core.Engine, tasks: Tasks, forget: Callable[[], None], device_bytes: int
    ) -> None:
        self._core = core
        self._tasks = tasks
        self._forget = forget  # removes what was dropped and whose tasks have ended
        self._often = (core.host_memory() + device_bytes) // 4  # bytes between two looks
        self._made = 0

    def make(self, layout: Layout, keep: bool) -> _core.Data:
        """A tile; raises `TooLarge` if there is no room for it even after all tasks."""
        self._forget()
        self._made += bytes_of(layout, layout.ld)
        if self._made > self._often:
            self._look()
        waited: set[int] = set()
        is_last = False
        while True:
            try:
                return self._core.add_homeless(layout.rows, layout.cols, layout.core_dtype, keep)
            except TooLarge:
                if is_last or bytes_of(layout, layout.ld) > self._core.host_memory():
                    raise
                waited = waited or set(self._tasks.pending)
            is_last = not self._make_room(waited)

    def _look(self) -> None:
        self._made = 0
        self._tasks.reap()
        self._forget()
        if not self._tasks.is_driven_by_waits and self._hold_dropped():
            self._wait_for_some()

    def _make_room(self, waited: set[int]) -> bool:
        """Wait for some tasks; false if there will be no more room once others have ended.

        Tasks that were submitted later than those that are waited for count if they hold tiles that
        nobody else does: other threads' tiles may have taken the room that was made.
        """
        has_progress = self._wait_for_some()
        if self._core.removing() > 0:  # in another thread, and its memory is still to come
            time.sleep(_PAUSE)
            return True
        is_waiting = not waited.isdisjoint(self._tasks.pending)
        return has_progress and (is_waiting or self._hold_dropped())

    def _wait_for_some(self) -> bool:
        """Wait until half of the pending tasks have ended; whether any of them has."""
        before = list(self._tasks.pending.items())
        self._tasks.reap()
        if self._tasks.pending and not _core.inside_body():
            self._tasks.wait_for_half()
            self._tasks.reap()
        self._forget()
        pending = self._tasks.pending
        return any(record.core is None or number not in pending for number, record in before)

    def _hold_dropped(self) -> bool:
        """Whether pending tasks hold tiles that nobody else holds."""
        uses: dict[Any, int] = {}
        for record in list(self._tasks.pending.values()):
            for index in range(len(places := record.places)):
                if places[index].given is None:
                    uses[places[index]] = uses.get(places[index], 0) + 1
        return any(others <= _OURS for others in _others(uses))


def _others(uses: dict[Any, int]) -> list[int]:
    """References to each key beside so many known ones."""
    return [sys.getrefcount(each) - known for each, known in uses.items()]


#: References that `_others` has itself, and the dictionary's.
_OURS = _others({object(): 0})[0]
