# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/waiters.py: what the module concurrent.futures asks of a future that it waits for.
"""Lets ``concurrent.futures.wait`` and ``as_completed`` wait for futures of engines.

They lock a future's `_condition`, look at its `_state`, and append to its `_waiters` what is to be
called when it has ended.
"""

from __future__ import annotations

import threading
from typing import Any


class Waiters:
    """Those who wait for one future by `concurrent.futures`."""

    __slots__ = ("condition", "state", "waiters")

    def __init__(self) -> None:
        self.condition = threading.Condition()
        # Guarded by the condition.
        self.state = "RUNNING"
        self.waiters: list[Any] = []

    def watch(self, future: Any) -> None:
        """Tell them when the future has ended."""
        future.add_done_callback(self._end)

    def _end(self, future: Any) -> None:
        failed = not future.cancelled() and future._failure() is not None
        with self.condition:
            self.state = "FINISHED"
            for waiter in self.waiters:
                if failed:
                    waiter.add_exception(future)
                else:
                    waiter.add_result(future)
            self.condition.notify_all()
