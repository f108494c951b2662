# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/pending.py: chunks in memory that tasks of engines still access.
"""A run reads what a source gives after the tasks that were submitted on that memory.

Invariants
  1. What a source has when the run begins, arrays or a list of chunks, is waited for by the thread
     that begins the run, as reads on the host are. So are constants of kernels.
  2. What a source makes later is waited for when it has made it. The thread that asks the source is
     in a body of the engine, which can't wait there: another one does, and ends with the tasks.
  3. Nobody waits for itself. Of 2 is left out: what the thread that began the run accesses within
     on_host, also if it begins to while the run waits; and all, if a body waits for the run, whose
     own task may be among those.
  4. Under the virtual clock no task ends while the source is asked: instead of 2, the run waits for
     all tasks when it begins.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import _core, circles, registered
from ..errors import InvalidType
from .chunk import Chunk, Through
from .rows import Rows


class Pending:
    """What a run waits for; made by the thread that begins it.

    Parameters
    ----------
    core : Engine
        The run's.
    stages : sequence of Stage, of front.py
        Kernels change fields as they say; functions on the host may write to all.
    """

    def __init__(self, core: _core.Engine, stages: Sequence[Any]) -> None:
        uses = [use for stage in stages for use in stage.uses]
        self._core = core
        self._changed = {use.name for use in uses if use.access != "read"}
        self._has_bodies = any(stage.kind != "kernel" for stage in stages)
        self._constants = [use.constant for use in uses if use.constant is not None]
        self._thread = threading.get_ident()
        self._by_chunk = False
        self._held: Sequence[registered.Access] = ()

    def begin(self, source: Iterable[Any] | Callable[[int], Any]) -> None:
        """Wait for what is known before the source is asked."""
        for array in self._constants:
            registered.settle(array)
        if isinstance(source, Rows):
            self._settle_fields(Chunk(0, source.given))
        elif isinstance(source, (list, tuple, collections.deque)):
            for given in source if registered.is_used() else ():
                try:
                    chunk = Chunk(0, given.chunk if isinstance(given, Through) else given)
                except InvalidType:
                    continue  # the run says so where it comes to it
                self._settle_fields(chunk)
        else:
            self._begin_by_chunk()

    def settle(self, chunk: Chunk) -> None:
        """Wait for what the source has made; called by the thread that asks it."""
        if not self._by_chunk or not registered.is_used():
            return
        for name, array in chunk.arrays().items():
            begin, size = registered.memory_of(array)
            if self._holds(begin, size):
                continue
            writes = self._may_write(name, array)
            for tasks in registered.settling(size):
                # Within its own engine's body it only finds out whether the memory is registered.
                if tasks.core is self._core and not tasks.settle(begin, size, writes):
                    continue
                if not self._settle_by_another_thread(tasks, begin, size, writes):
                    self._by_chunk = False
                    return

    def _begin_by_chunk(self) -> None:
        if _core.inside_body():
            return
        for tasks in registered.settling(1):
            if circles.is_awaited(self._thread, tasks.pending, tasks.ended):
                return
        for tasks in registered.settling(1):
            if tasks.is_driven_by_waits:
                tasks.wait(-1.0)
        self._held = registered.held_here()
        self._by_chunk = not any(
            tasks.is_driven_by_waits and tasks.core is self._core
            for tasks in registered.settling(1)
        )

    def _settle_fields(self, chunk: Chunk) -> None:
        for name, array in chunk.arrays().items():
            registered.settle(array, self._may_write(name, array))

    def _holds(self, begin: int, size: int) -> bool:
        """Whether the thread that began the run accesses some of the memory on the host."""
        spans = [registered.memory_of(each.array) for each in tuple(self._held)]
        return any(begin < at + length and at < begin + size for at, length in spans)

    def _settle_by_another_thread(
        self, tasks: registered.Tasks, begin: int, size: int, writes: bool
    ) -> bool:
        """Wait for tasks on some memory; false if a body waits for who began the run."""
        raised: list[BaseException] = []

        def look(_: object) -> None:
            if circles.is_awaited(self._thread, tasks.pending, tasks.ended):
                raise _Circle
            if self._holds(begin, size):  # by now; it may be about to ask for the next result
                raise _Accessed

        def run() -> None:
            try:
                tasks.settle(begin, size, writes, look)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run, name="quadriga-pending", daemon=True)
        thread.start()
        thread.join()
        if raised and not isinstance(raised[0], (_Circle, _Accessed)):
            raise raised[0]
        return not (raised and isinstance(raised[0], _Circle))

    def _may_write(self, name: str, array: np.ndarray[Any, Any]) -> bool:
        return name in self._changed or (self._has_bodies and array.flags.writeable)


class _Circle(Exception):
    """A task waits for whoever waits for it."""


class _Accessed(Exception):
    """Whoever waits for the run accesses the memory on the host."""
