# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/started_parts.py: collectives of parts of any sizes that are started.
"""What a communicator starts with parts of several sizes: igatherv, ialltoallw and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..typing import MessageArray
from . import parts
from .layout import Layout
from .request import Request
from .started import StartedCollectives

Sides = tuple[list[parts.Part], list[parts.Part]]


class StartedExchanges(StartedCollectives):
    """The collectives of `PartsExchange`, started: what they receive is given.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import message
    >>> with message.world() as comm:
    ...     rows, whole = np.full((comm.rank + 1, 2), 1.0), np.zeros((1, 2))
    ...     request = comm.iallgatherv(rows, whole, counts=[1])
    ...     status = request.wait()
    ...     print(whole)
    [[1. 1.]]
    """

    def igatherv(
        self,
        sendarray: MessageArray,
        recvarray: MessageArray | Sequence[MessageArray] | None = None,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        root: int = 0,
    ) -> Request:
        """Start to put the ranks' arrays, of any sizes, into the root's; see `gatherv`."""

        def make() -> Sides:
            is_root = parts.is_rank(root, self.core.rank)
            into = parts.of_ranks(recvarray, counts, displs, self.core.size) if is_root else []
            return [(root, sendarray, None)], into

        return self._exchanged("gatherv", make, root)

    def iscatterv(
        self,
        sendarray: MessageArray | Sequence[MessageArray] | None,
        recvarray: MessageArray,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        root: int = 0,
    ) -> Request:
        """Start to give each rank its rows of the root's array; see `gatherv`."""

        def make() -> Sides:
            is_root = parts.is_rank(root, self.core.rank)
            given = parts.of_ranks(sendarray, counts, displs, self.core.size) if is_root else []
            return given, [(root, recvarray, None)]

        return self._exchanged("scatterv", make, root)

    def iallgatherv(
        self,
        sendarray: MessageArray,
        recvarray: MessageArray | Sequence[MessageArray],
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
    ) -> Request:
        """Start to put the ranks' arrays, of any sizes, into that of each rank; see `gatherv`."""

        def make() -> Sides:
            into = parts.of_ranks(recvarray, counts, displs, self.core.size)
            return [(0, sendarray, None)], into

        return self._exchanged("allgatherv", make)

    def ialltoallv(
        self,
        sendarray: MessageArray,
        sendcounts: Sequence[int],
        recvarray: MessageArray,
        recvcounts: Sequence[int],
        senddispls: Sequence[int] | None = None,
        recvdispls: Sequence[int] | None = None,
    ) -> Request:
        """Start to give rank i sendcounts[i] rows of this array, and to get recvcounts[i]."""

        def make() -> Sides:
            leaving = parts.of_ranks(sendarray, sendcounts, senddispls, self.core.size)
            return leaving, parts.of_ranks(recvarray, recvcounts, recvdispls, self.core.size)

        return self._exchanged("alltoallv", make)

    def ialltoallw(
        self,
        sendarrays: Sequence[MessageArray | None],
        recvarrays: Sequence[MessageArray | None],
        *,
        sendlayouts: Sequence[Layout | None] | None = None,
        recvlayouts: Sequence[Layout | None] | None = None,
    ) -> Request:
        """Start to give rank i the i-th array, of any type and strides, and to get one from it."""

        def make() -> Sides:
            leaving = parts.of_ranks(sendarrays, None, None, self.core.size, sendlayouts)
            return leaving, parts.of_ranks(recvarrays, None, None, self.core.size, recvlayouts)

        return self._exchanged("alltoallw", make)

    def ineighbor_alltoall(
        self,
        sendarray: MessageArray,
        recvarray: MessageArray,
        *,
        destinations: Sequence[int],
        sources: Sequence[int] | None = None,
    ) -> Request:
        """Start to exchange blocks with some ranks; see `neighbor_alltoall`."""

        def make() -> Sides:
            to, froms = parts.neighbors(destinations, sources)
            return parts.blocks(sendarray, to), parts.blocks(recvarray, froms)

        return self._exchanged("neighbor_alltoall", make)

    def _exchanged(self, kind: str, make: Callable[[], Sides], root: int = -1) -> Request:
        leaving, arriving = self._made(kind, make)
        return Request(self.core.start_exchange(kind, root, leaving, arriving), self._limit())
