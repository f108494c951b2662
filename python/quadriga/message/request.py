# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/request.py: messages and collectives that have been started.
"""Requests: what `isend`, `irecv` and collectives that are started return."""

from __future__ import annotations

import time
from math import isnan

from .. import mapped
from .._core import MessageRequest, MessageStatus
from ..errors import InvalidArgument, InvalidType


def limit_of(seconds: float | None) -> float:
    """What the core takes: a deadline that has passed already isn't one that never comes."""
    if seconds is None:
        return -1.0
    try:
        limit = float(seconds)
    except (TypeError, ValueError, OverflowError):
        raise InvalidType(f"deadline is {seconds!r}; expected seconds, or None") from None
    if isnan(limit):
        raise InvalidArgument("deadline is nan, which isn't a number; expected seconds, or None")
    return 0.0 if limit < 0 else limit


class Request:
    """A message or a collective that has been started; it goes on when this object is dropped."""

    __slots__ = ("_limit", "core")

    def __init__(self, core: MessageRequest, limit: float) -> None:
        self.core = core
        self._limit = limit

    def wait(self, *, deadline: float | None = None) -> MessageStatus:
        """Wait until it has ended, or raise what ended it; after `Deadline` it goes on."""
        status = self.core.wait(self._limit if deadline is None else limit_of(deadline))
        mapped.check()
        return status

    def wait_since(self, begin: float, deadline: float | None = None) -> MessageStatus:
        """Wait as `wait` does; the seconds count from a time of `time.monotonic`."""
        limit = self._limit if deadline is None else limit_of(deadline)
        status = self.core.wait(limit, time.monotonic() - begin)
        mapped.check()
        return status

    def test(self) -> bool:
        """Whether it has ended; raises what ended it."""
        ended = self.core.test()
        mapped.check()
        return ended

    def cancel(self) -> bool:
        """Withdraw it; false if it has ended, or is a collective."""
        return self.core.cancel()
