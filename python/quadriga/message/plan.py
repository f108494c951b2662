# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/plan.py: exchanges that are set up once and started often.
"""Plans: what `Communicator.plan` returns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import mapped
from .._core import MessageCommunicator, MessagePlan, MessageStatus
from ..errors import InvalidArgument
from .request import limit_of

Message = tuple[Any, ...]


class ExchangePlan:
    """Sends and receives that are started together, again and again.

    Its arrays are used from `start` to the end of `wait`; they live as long as the plan, and can't
    be resized meanwhile. One thread at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import message
    >>> with message.world() as comm:
    ...     a = np.arange(6.0).reshape(2, 3)
    ...     plan = comm.plan(sends=[(a[:, 0], 0)], receives=[(a[:, 2], 0)])
    ...     plan.start()
    ...     plan.wait()
    ...     print(a[:, 2])
    [0. 3.]
    """

    __slots__ = ("_limit", "core")

    def __init__(self, core: MessagePlan, limit: float) -> None:
        """Wrap what a communicator made."""
        self.core = core
        self._limit = limit

    def start(self) -> None:
        """Start all receives and sends; the last start must have ended."""
        self.core.start()

    def wait(self, *, deadline: float | None = None) -> None:
        """Wait until all have ended.

        Raises what ended one of them, the others being withdrawn; after `Deadline` all go on.
        """
        self.core.wait(self._limit if deadline is None else limit_of(deadline))
        mapped.check()

    def test(self) -> bool:
        """Whether all have ended; raises as `wait` does."""
        ended = self.core.test()
        mapped.check()
        return ended

    def cancel(self) -> bool:
        """Withdraw what hasn't ended; false if all has."""
        return self.core.cancel()

    @property
    def received(self) -> list[MessageStatus]:
        """What the receives got, in their order, once they have ended."""
        return self.core.received()


def plan_of(
    comm: MessageCommunicator,
    sends: Iterable[Message],
    receives: Iterable[Message],
    limit: float,
) -> ExchangePlan:
    """A plan of tuples that may end early."""
    leaving = [_whole("send", each, 0) for each in sends]
    arriving = [_whole("receive", each, -1) for each in receives]
    return ExchangePlan(comm.plan(leaving, arriving), limit)


def _whole(kind: str, message: Message, tag: int) -> Message:
    """Array, rank, tag, layout."""
    if not isinstance(message, tuple) or not 2 <= len(message) <= 4:
        raise InvalidArgument(f"plan: expected each {kind} as (array, rank[, tag[, layout]])")
    return message + (tag, None)[len(message) - 2 :]
