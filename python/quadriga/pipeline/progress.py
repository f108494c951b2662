# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/progress.py: shows a run while it goes on.
"""The live view of a run: a screen on a terminal, else lines; or whatever a function does.

Invariants
  1. Nothing runs but what `tell` does: no thread of its own, so nothing outlives an interrupt.
  2. A terminal that goes away, or a closed stream, ends the view and not the run.
"""

from __future__ import annotations

import collections
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sized
from typing import Any, Protocol

from .stats import PipelineStats
from .view import line, screen

Told = Callable[[PipelineStats], object]

_EVERY = 0.5  # seconds, on a terminal and of functions
_EVERY_LINE = 10.0  # seconds, where lines stay
_RECENT = 5.0  # seconds that `now` means, about
_terminal = threading.Lock()  # whose screen is on it


class _View(Protocol):
    every: float

    def tell(self, stats: PipelineStats) -> None: ...
    def close(self) -> None: ...


class Progress:
    """Tells a view of the statistics from time to time.

    Parameters
    ----------
    stats : callable
        Statistics so far.
    source : Any
        Its length, if it has one, tells the time left.
    told : callable, optional
        Is called with the statistics, instead of a view on standard error. What it raises goes on.
    """

    def __init__(
        self, stats: Callable[[], PipelineStats], source: Any, told: Told | None = None
    ) -> None:
        self._stats = stats
        self._view: _View = _Function(told) if told else _of_stderr(_length(source))
        self._next = time.monotonic() + min(self._view.every, 1.0)

    def tell(self) -> None:
        """If it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._view.every
        self._view.tell(self._stats())

    def end(self, failed: bool = False) -> None:
        """The run has ended; after a failure functions aren't called."""
        try:
            if not (failed and isinstance(self._view, _Function)):
                self._view.tell(self._stats())
        finally:
            self._view.close()


def progress_of(
    progress: bool | Told, stats: Callable[[], PipelineStats], source: Any
) -> Progress | None:
    """What the argument asks for."""
    if not progress:
        return None
    return Progress(stats, source, progress if callable(progress) else None)


class _Function:
    every = _EVERY

    def __init__(self, told: Told) -> None:
        self._told = told

    def tell(self, stats: PipelineStats) -> None:
        self._told(stats)

    def close(self) -> None:
        return


class _Lines:
    every = _EVERY_LINE

    def __init__(self, total: int | None) -> None:
        self._total = total

    def tell(self, stats: PipelineStats) -> None:
        if sys.stderr is None:
            return
        with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it
            sys.stderr.write(line(stats, self._total) + "\n")
            sys.stderr.flush()

    def close(self) -> None:
        return


class _Screen:
    """Over itself; what the program prints meanwhile appears above it."""

    every = _EVERY

    def __init__(self, total: int | None) -> None:
        # Imported where it is needed: it takes longer than all the rest of the package.
        from rich.console import Console
        from rich.live import Live

        class Terminal(Console):
            def on_broken_pipe(self) -> None:  # Console's own ends the program
                raise BrokenPipeError

        console = Terminal(stderr=True)
        # Whether a screen can be written over itself, and its columns stay where they are.
        self.is_able = console.is_terminal and not (
            console.is_dumb_terminal or console.options.ascii_only
        )
        self._total = total
        self._seen: collections.deque[PipelineStats] = collections.deque()
        self._live = Live(
            console=console, auto_refresh=False, redirect_stdout=_is_terminal(sys.stdout)
        )
        self._is_gone = False  # the terminal

    def tell(self, stats: PipelineStats) -> None:
        from rich.text import Text

        while len(self._seen) > 1 and stats.seconds - self._seen[1].seconds >= _RECENT:
            self._seen.popleft()
        before = self._seen[0] if self._seen else None
        self._seen.append(stats)
        text = Text(screen(stats, self._total, before), no_wrap=True, overflow="ellipsis")
        if self._is_gone:
            return
        try:
            if not self._live.is_started:
                self._live.start()
            self._live.update(text, refresh=True)
        except (OSError, ValueError):
            self._is_gone = True

    def close(self) -> None:
        try:
            if self._live.is_started:
                with contextlib.suppress(OSError, ValueError):
                    self._live.stop()
        finally:
            _terminal.release()


def _of_stderr(total: int | None) -> _View:
    # One screen at a time: other runs' lines appear above it.
    if not _is_terminal(sys.stderr) or not _terminal.acquire(blocking=False):
        return _Lines(total)
    view = None
    try:
        view = _Screen(total)
    finally:
        if view is None or not view.is_able:
            _terminal.release()
    return view if view.is_able else _Lines(total)


def _is_terminal(stream: Any) -> bool:
    """Whatever a program has put in the place of a standard stream."""
    try:
        return bool(stream.isatty())
    except (AttributeError, OSError, ValueError):  # none, or closed
        return False


def _length(source: Any) -> int | None:
    try:
        return len(source) if isinstance(source, Sized) else None
    except (TypeError, NotImplementedError, OverflowError):  # as loaders of streams do
        return None
