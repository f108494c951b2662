# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/started.py: collectives that are started, and waited for later.
"""What a communicator starts and carries out while its program computes: ibcast and its kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from .._core import MessageCommunicator
from ..typing import MessageArray
from . import parts
from .layout import Layout
from .request import Request

Made = TypeVar("Made")


class StartedCollectives:
    """Collectives that return a `Request` at once, for a communicator.

    All ranks start them in the same order; a thread of the library carries them out in that order,
    beside collectives that are called meanwhile, which they never meet. Arrays mustn't change until
    the request has ended, and results are given: an array for each place that counts on this rank.
    What ranks disagree in raises on all of them, in `wait` or `test`; what is wrong with this
    rank's arguments alone raises here at once, and on the others in their `wait`.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import message
    >>> with message.world() as comm:
    ...     total = np.zeros(3)
    ...     request = comm.iallreduce(np.arange(3.0), total)
    ...     # compute meanwhile
    ...     status = request.wait()
    ...     print(total / comm.size)
    [0. 1. 2.]
    """

    core: MessageCommunicator

    def ibarrier(self) -> Request:
        """Start to wait until all ranks have come here."""
        return self._started("barrier", None, None)

    def ibcast(
        self, array: MessageArray, root: int = 0, *, layout: Layout | None = None
    ) -> Request:
        """Start to copy the root's array to all ranks."""
        return self._started("bcast", None, array, root, layout=layout)

    def ireduce(
        self,
        sendarray: MessageArray,
        recvarray: MessageArray | None = None,
        op: str = "sum",
        root: int = 0,
        *,
        reproducible: bool = False,
    ) -> Request:
        """Start to combine the arrays of all ranks on the root, where alone recvarray counts."""
        return self._started("reduce", sendarray, recvarray, root, op, reproducible)

    def iallreduce(
        self,
        sendarray: MessageArray,
        recvarray: MessageArray,
        op: str = "sum",
        *,
        reproducible: bool = False,
    ) -> Request:
        """Start to combine the arrays of all ranks on all ranks; both may be the same array."""
        return self._started("allreduce", sendarray, recvarray, -1, op, reproducible)

    def igather(
        self, sendarray: MessageArray, recvarray: MessageArray | None = None, root: int = 0
    ) -> Request:
        """Start to put the ranks' arrays one after the other on the root."""
        return self._started("gather", sendarray, recvarray, root)

    def iallgather(self, sendarray: MessageArray, recvarray: MessageArray) -> Request:
        """Start to put the ranks' arrays one after the other on all ranks."""
        return self._started("allgather", sendarray, recvarray)

    def iscatter(
        self, sendarray: MessageArray | None, recvarray: MessageArray, root: int = 0
    ) -> Request:
        """Start to give each rank its part of the root's array, in order."""
        given = sendarray if parts.is_rank(root, self.core.rank) else None
        return self._started("scatter", given, recvarray, root)

    def ialltoall(self, sendarray: MessageArray, recvarray: MessageArray) -> Request:
        """Start to give each rank a part of this array, and to get one from each, in order."""
        return self._started("alltoall", sendarray, recvarray)

    def ireduce_scatter(
        self,
        sendarray: MessageArray,
        recvarray: MessageArray,
        counts: Sequence[int] | None = None,
        op: str = "sum",
        *,
        reproducible: bool = False,
    ) -> Request:
        """Start to combine the arrays of all ranks; rank i gets counts[i] rows, or all as many."""
        kind = "reduce_scatter"
        sizes = self._made(kind, lambda: parts.elements_of(sendarray, counts, self.core.size))
        return self._started(kind, sendarray, recvarray, -1, op, reproducible, counts=sizes)

    def _limit(self, deadline: float | None = None) -> float:
        """The seconds of a call; negative: no end."""
        raise NotImplementedError

    def _started(
        self,
        kind: str,
        sent: MessageArray | None,
        received: MessageArray | None,
        root: int = -1,
        op: str = "sum",
        reproducible: bool = False,
        layout: Layout | None = None,
        counts: Sequence[int] = (),
    ) -> Request:
        core = self.core.start(kind, sent, received, layout, root, op, reproducible, list(counts))
        return Request(core, self._limit())

    def _made(self, kind: str, make: Callable[[], Made]) -> Made:
        """What a collective needs; a rank that can't make it tells the others."""
        try:
            return make()
        except Exception as error:
            self.core.refuse_started(kind, str(error))
            raise
