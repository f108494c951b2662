# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/exchanges.py: collectives in which ranks exchange parts of any sizes.
"""What a communicator can do with parts of several sizes: gatherv, alltoallw and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import mapped
from .._core import MessageCommunicator
from ..errors import InvalidArgument
from ..typing import MessageArray, MessageArrayT
from . import parts
from .arrays import empty, empty_like, shape_of
from .layout import Layout

Made = TypeVar("Made")


class PartsExchange:
    """Collectives of parts of any sizes, for a communicator."""

    core: MessageCommunicator

    @property
    def rank(self) -> int:
        """Which rank this is, from 0."""
        return self.core.rank

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.core.size

    def gatherv(
        self,
        sendarray: MessageArray,
        recvarray: MessageArray | Sequence[MessageArray] | None = None,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        root: int = 0,
        *,
        deadline: float | None = None,
    ) -> MessageArray | Sequence[MessageArray] | None:
        """Put the ranks' arrays, of any sizes, into the root's array.

        Rank i's goes to counts[i] rows from row displs[i] on, one after the other by default; or to
        the i-th array of a list. Only the root's recvarray, counts and displs count.
        """

        def make() -> tuple[Any, list[parts.Part]]:
            if not parts.is_rank(root, self.rank):
                return None, []
            into = recvarray
            if into is None and counts is not None:
                sizes = parts.numbers("counts", counts)
                begins = None if displs is None else parts.numbers("displs", displs)
                rows = (
                    sum(sizes) if begins is None else max(map(sum, zip(sizes, begins, strict=True)))
                )
                into = empty(sendarray, (rows, *shape_of(sendarray)[1:]), zeros=True)
            return into, parts.of_ranks(into, counts, displs, self.size)

        into: MessageArray | Sequence[MessageArray] | None
        into, arriving = self._prepared("gatherv", make, deadline)
        self._exchange("gatherv", root, [(root, sendarray, None)], arriving, deadline)
        return into

    def scatterv(
        self,
        sendarray: MessageArray | Sequence[MessageArray] | None,
        recvarray: MessageArrayT,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        root: int = 0,
        *,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Give each rank its rows of the root's array, or its array of a list; see `gatherv`."""

        def make() -> list[parts.Part]:
            if not parts.is_rank(root, self.rank):
                return []
            return parts.of_ranks(sendarray, counts, displs, self.size)

        leaving = self._prepared("scatterv", make, deadline)
        self._exchange("scatterv", root, leaving, [(root, recvarray, None)], deadline)
        return recvarray

    def allgatherv(
        self,
        sendarray: MessageArray,
        recvarray: MessageArray | Sequence[MessageArray] | None,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        *,
        deadline: float | None = None,
    ) -> MessageArray | Sequence[MessageArray]:
        """Put the ranks' arrays, of any sizes, into the array of each rank; see `gatherv`."""

        def make() -> tuple[Any, list[parts.Part]]:
            into = recvarray
            if into is None and counts is not None and displs is None:
                rows = sum(parts.numbers("counts", counts))
                into = empty(sendarray, (rows, *shape_of(sendarray)[1:]))
            return into, parts.of_ranks(into, counts, displs, self.size)

        into: MessageArray | Sequence[MessageArray]
        into, arriving = self._prepared("allgatherv", make, deadline)
        self._exchange("allgatherv", -1, [(0, sendarray, None)], arriving, deadline)
        return into

    def alltoallv(
        self,
        sendarray: MessageArray,
        sendcounts: Sequence[int],
        recvarray: MessageArrayT,
        recvcounts: Sequence[int],
        senddispls: Sequence[int] | None = None,
        recvdispls: Sequence[int] | None = None,
        *,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Give rank i sendcounts[i] rows of this array, and get recvcounts[i] from it."""

        def make() -> tuple[list[parts.Part], list[parts.Part]]:
            leaving = parts.of_ranks(sendarray, sendcounts, senddispls, self.size)
            return leaving, parts.of_ranks(recvarray, recvcounts, recvdispls, self.size)

        leaving, arriving = self._prepared("alltoallv", make, deadline)
        self._exchange("alltoallv", -1, leaving, arriving, deadline)
        return recvarray

    def alltoallw(
        self,
        sendarrays: Sequence[MessageArray | None],
        recvarrays: Sequence[MessageArray | None],
        *,
        sendlayouts: Sequence[Layout | None] | None = None,
        recvlayouts: Sequence[Layout | None] | None = None,
        deadline: float | None = None,
    ) -> None:
        """Give rank i the i-th array, of any type and strides, and get one from it; or None."""

        def make() -> tuple[list[parts.Part], list[parts.Part]]:
            leaving = parts.of_ranks(sendarrays, None, None, self.size, sendlayouts)
            return leaving, parts.of_ranks(recvarrays, None, None, self.size, recvlayouts)

        leaving, arriving = self._prepared("alltoallw", make, deadline)
        self._exchange("alltoallw", -1, leaving, arriving, deadline)

    def neighbor_alltoall(
        self,
        sendarray: MessageArrayT,
        recvarray: MessageArrayT | None = None,
        *,
        destinations: Sequence[int],
        sources: Sequence[int] | None = None,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Give each of some ranks a block of this array, and get one from each of the sources.

        Blocks are equal parts along the first axis, in the order of the ranks, which are the same
        for both by default. Of several blocks for one rank the first goes to the first that is
        listed there. Called by all ranks, also those without neighbours.
        """

        def make() -> tuple[MessageArrayT, list[parts.Part], list[parts.Part]]:
            into = empty_like(sendarray) if recvarray is None else recvarray
            to, froms = parts.neighbors(destinations, sources)
            return into, parts.blocks(sendarray, to), parts.blocks(into, froms)

        into, leaving, arriving = self._prepared("neighbor_alltoall", make, deadline)
        self._exchange("neighbor_alltoall", -1, leaving, arriving, deadline)
        return into

    def _limit(self, deadline: float | None = None) -> float:
        """The seconds of a call; negative: no end."""
        raise NotImplementedError

    def _limit_or_own(self, deadline: float | None) -> float:
        """The seconds of a call, whose deadline may be what is wrong with it."""
        try:
            return self._limit(deadline)
        except InvalidArgument:
            return self._limit()

    def _prepared(self, kind: str, make: Callable[[], Made], deadline: float | None) -> Made:
        """What a collective needs; a rank that can't make it tells the others."""
        try:
            return make()
        except Exception as error:
            self.core.refuse(kind, str(error), self._limit_or_own(deadline))
            raise

    def _exchange(
        self,
        kind: str,
        root: int,
        leaving: list[parts.Part],
        arriving: list[parts.Part],
        deadline: float | None,
    ) -> None:
        limit = self._prepared(kind, lambda: self._limit(deadline), None)
        self.core.exchange(kind, root, leaving, arriving, limit)
        mapped.check()
