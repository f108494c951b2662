# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/communicator.py: communicators, with mpi4py's names; arrays only.
"""Ranks of one host that exchange arrays: one to one, and all together."""

from __future__ import annotations

import atexit
import logging
import time
import warnings
import weakref
from collections.abc import Iterable, Sequence
from math import prod
from types import TracebackType
from typing import Any

from .. import cuda_libraries, mapped
from .._core import MessageCommunicator, MessageStatus
from ..arguments import whole
from ..engine import Engine
from ..errors import InvalidType
from ..typing import MessageArray, MessageArrayT, StreamLike
from . import parts
from .arrays import empty, empty_like, shape_of
from .exchanges import PartsExchange
from .layout import Layout
from .plan import ExchangePlan, Message, plan_of
from .prediction import PredictedPath
from .request import Request, limit_of
from .started_parts import StartedExchanges
from .tasks import MessageTasks
from .times import Explained

ANY_SOURCE = -1
ANY_TAG = -1

# Messages that a warning names.
_MOST_NAMED = 8
_log = logging.getLogger("quadriga")
_worlds: weakref.WeakSet[Communicator] = weakref.WeakSet()


class Communicator(PartsExchange, StartedExchanges, Explained):
    """Ranks that exchange messages; made by `join`, `world` or `Split`.

    Arrays may be any NumPy arrays and views, also strided ones, what has the buffer protocol, and
    arrays in memory of devices; a new result is where the array is that was given.
    A message's elements must be those that its receive expects, in type and order; the receive may
    be longer. `layout` says which elements of an array are meant, `deadline` is in seconds: a call
    that takes longer raises `Deadline`, which says what each rank waits for.

    `stream` orders a message with a stream of the array's device, instead of the array's own: one
    of CuPy or PyTorch, its address, or `Devices.stream`. What it holds comes first, without a wait
    of the host; what is queued on it after `recv`, or after a request's `wait`, comes later.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga import message
    >>> with message.world() as comm:
    ...     print(comm.allreduce(np.arange(3.0)) / comm.size)
    [0. 1. 2.]
    """

    def __init__(self, core: MessageCommunicator, deadline: float | None = None) -> None:
        """Wrap what `join` made; `deadline` holds for calls that have none of their own."""
        self.core = core
        self.deadline = deadline
        self._is_world = False
        self._is_part = False

    def send(
        self,
        array: MessageArray,
        dest: int,
        tag: int = 0,
        *,
        layout: Layout | None = None,
        deadline: float | None = None,
        stream: StreamLike | None = None,
    ) -> None:
        """Send an array; returns once it may be changed again."""
        self.core.send(array, dest, tag, layout, self._limit(deadline), stream)
        mapped.check()

    def recv(
        self,
        array: MessageArray,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        *,
        layout: Layout | None = None,
        deadline: float | None = None,
        stream: StreamLike | None = None,
    ) -> MessageStatus:
        """Receive into an array; says from whom, with which tag and how many bytes.

        With a `stream` it returns as soon as the message is on its way to the array.
        """
        status = self.core.recv(array, source, tag, layout, self._limit(deadline), stream)
        mapped.check()
        return status

    def isend(
        self,
        array: MessageArray,
        dest: int,
        tag: int = 0,
        *,
        layout: Layout | None = None,
        stream: StreamLike | None = None,
    ) -> Request:
        """Start to send; the array mustn't change until the request has ended."""
        return Request(self.core.isend(array, dest, tag, layout, stream), self._limit())

    def irecv(
        self,
        array: MessageArray,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        *,
        layout: Layout | None = None,
        stream: StreamLike | None = None,
    ) -> Request:
        """Start to receive; the array is filled once the request has ended.

        With a `stream`, `wait` returns as `recv` does.
        """
        return Request(self.core.irecv(array, source, tag, layout, stream), self._limit())

    def sendrecv(
        self,
        sendarray: MessageArray,
        dest: int,
        recvarray: MessageArray,
        source: int = ANY_SOURCE,
        sendtag: int = 0,
        recvtag: int = ANY_TAG,
        *,
        sendlayout: Layout | None = None,
        recvlayout: Layout | None = None,
        deadline: float | None = None,
        stream: StreamLike | None = None,
    ) -> MessageStatus:
        """Send one array and receive another at once."""
        status = self.core.sendrecv(
            sendarray, dest, sendtag, recvarray, source, recvtag, sendlayout, recvlayout,
            self._limit(deadline), stream,
        )  # fmt: skip
        mapped.check()
        return status

    def probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, *, deadline: float | None = None
    ) -> MessageStatus:
        """Wait for a message without receiving it."""
        found = self.core.probe(source, tag, True, self._limit(deadline))
        assert found is not None
        return found

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> MessageStatus | None:
        """Say which message could be received now, if there is one."""
        return self.core.probe(source, tag, False, -1.0)

    def plan(self, sends: Iterable[Message] = (), receives: Iterable[Message] = ()) -> ExchangePlan:
        """Prepare sends and receives that are started together, again and again.

        Each is a tuple `(array, rank)`, which a tag and a layout may follow. Messages between two
        ranks meet in the order in which both sides list them.
        """
        return plan_of(self.core, sends, receives, self._limit())

    def barrier(self, *, deadline: float | None = None) -> None:
        """Wait until all ranks have come here."""
        self._collective("barrier", None, None, deadline)

    def bcast(
        self,
        array: MessageArrayT,
        root: int = 0,
        *,
        layout: Layout | None = None,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Copy the root's array to all ranks; returns the array."""
        self._collective("bcast", None, array, deadline, root, layout=layout)
        return array

    def reduce(
        self,
        sendarray: MessageArrayT,
        recvarray: MessageArrayT | None = None,
        op: str = "sum",
        root: int = 0,
        *,
        reproducible: bool = False,
        deadline: float | None = None,
    ) -> MessageArrayT | None:
        """Combine the arrays of all ranks on the root, which gets the result, a new one by default.

        `op` is MPI's: sum, prod, min, max, land, lor, lxor, band, bor, bxor. The order in which
        elements are combined depends on the number of ranks, the root, the size and whether the
        data are on devices; with `reproducible` on the number of ranks and the root alone.
        """
        kind, into = "reduce", recvarray
        if into is None and parts.is_rank(root, self.rank):
            into = self._prepared(kind, lambda: empty_like(sendarray), deadline)
        self._collective(kind, sendarray, into, deadline, root, op, reproducible)
        return into

    def allreduce(
        self,
        sendarray: MessageArrayT,
        recvarray: MessageArrayT | None = None,
        op: str = "sum",
        *,
        reproducible: bool = False,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Combine the arrays of all ranks on all ranks; the same array may be given twice.

        `reproducible` as of `reduce`.
        """
        kind, into = "allreduce", recvarray
        if into is None:
            into = self._prepared(kind, lambda: empty_like(sendarray), deadline)
        self._collective(kind, sendarray, into, deadline, -1, op, reproducible)
        return into

    def gather(
        self,
        sendarray: MessageArrayT,
        recvarray: MessageArrayT | None = None,
        root: int = 0,
        *,
        deadline: float | None = None,
    ) -> MessageArrayT | None:
        """Put the ranks' arrays one after the other on the root: shape (size, ...) by default."""
        kind, into = "gather", recvarray
        if into is None and parts.is_rank(root, self.rank):
            into = self._prepared(kind, lambda: self._parts(sendarray), deadline)
        self._collective(kind, sendarray, into, deadline, root)
        return into

    def allgather(
        self,
        sendarray: MessageArrayT,
        recvarray: MessageArrayT | None = None,
        *,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Put the ranks' arrays one after the other on all ranks."""
        kind, into = "allgather", recvarray
        if into is None:
            into = self._prepared(kind, lambda: self._parts(sendarray), deadline)
        self._collective(kind, sendarray, into, deadline)
        return into

    def scatter(
        self,
        sendarray: MessageArrayT | None,
        recvarray: MessageArrayT,
        root: int = 0,
        *,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Give each rank its part of the root's array, in order."""
        sent = sendarray if parts.is_rank(root, self.rank) else None
        self._collective("scatter", sent, recvarray, deadline, root)
        return recvarray

    def alltoall(
        self,
        sendarray: MessageArrayT,
        recvarray: MessageArrayT | None = None,
        *,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Give each rank a part of this array, and get one from each, in order."""
        kind, into = "alltoall", recvarray
        if into is None:
            into = self._prepared(kind, lambda: empty_like(sendarray), deadline)
        self._collective(kind, sendarray, into, deadline)
        return into

    def reduce_scatter(
        self,
        sendarray: MessageArrayT,
        recvarray: MessageArrayT | None = None,
        counts: Sequence[int] | None = None,
        op: str = "sum",
        *,
        reproducible: bool = False,
        deadline: float | None = None,
    ) -> MessageArrayT:
        """Combine the arrays of all ranks and give each rank its rows of the result.

        Rank i gets counts[i] rows; without counts, all get as many (MPI's Reduce_scatter_block).
        """

        def make() -> tuple[MessageArrayT, list[int]]:
            sizes = parts.elements_of(sendarray, counts, self.size)
            if recvarray is not None:
                return recvarray, sizes
            shape = shape_of(sendarray)
            own = sizes[self.rank] // max(1, prod(shape[1:])) if self.rank < len(sizes) else 0
            return empty(sendarray, (own, *shape[1:])), sizes

        kind = "reduce_scatter"
        into, elements = self._prepared(kind, make, deadline)
        self._collective(kind, sendarray, into, deadline, -1, op, reproducible, counts=elements)
        return into

    def force(self, algorithm: str | None = None, segment: int = 0) -> None:
        """Choose how `bcast`, reductions and `allgather` run from now on; the same on all ranks.

        `algorithm` is linear, chain, binary, binomial or split_binary, `segment` in bytes; without
        them, a cost model chooses. "messages" has them chosen among these, "nccl" leaves arrays on
        GPUs to NCCL wherever it can; without, whichever was measured faster.
        """
        if algorithm is not None and not isinstance(algorithm, str):
            raise InvalidType(f"algorithm is {algorithm!r}; expected a name, or None")
        self.core.force(algorithm, whole("segment", segment, 0, 2**62))

    def Split(
        self, color: int = 0, key: int = 0, *, deadline: float | None = None
    ) -> Communicator | None:
        """Form a communicator of the ranks that give the same color, ordered by key.

        A negative color belongs to none. A part needs no close, and ends with its world.
        """
        core = self.core.split(color, key, self._limit(deadline))
        if core is None:
            return None
        part = Communicator(core, self.deadline)
        part._is_part = True
        return part

    def shrink(self) -> Communicator:
        """Form the communicator of the ranks that are left, in their order, after others were lost.

        All that are left call it, each once for each loss; they get the same ranks whatever each of
        them knows. Nobody waits. Whatever else is under way in this communicator raises `PeerLost`.

        Examples
        --------
        >>> from quadriga import message
        >>> with message.world() as comm:
        ...     print(comm.shrink().size)
        1
        """
        return Communicator(self.core.shrink(), self.deadline)

    def paths(self) -> list[dict[str, Any]]:
        """How messages from memory of devices pass, rank by rank: what was found at first contact.

        Both sides know the same. `in` is from the rank's devices to here, `out` from here to there;
        `opened` counts the rank's allocations that this process has opened.

        Examples
        --------
        >>> from quadriga import message
        >>> with message.world() as comm:
        ...     comm.paths()
        [{'rank': 0, 'in': 'same process', 'out': 'same process', 'opened': 0}]
        """
        own = "same process"
        return [
            {"rank": rank, "in": own, "out": own, "opened": 0}
            if rank == self.rank
            else {"rank": rank, "in": one, "out": other, "opened": opened}
            for rank, (one, other, opened) in enumerate(self.core.paths())
        ]

    def predict(
        self,
        array: MessageArray,
        dest: int,
        *,
        layout: Layout | None = None,
        into: MessageArray | None = None,
    ) -> list[PredictedPath]:
        """How `send` of an array would go: its paths, one of them chosen, and their seconds.

        Sends nothing. `into` is an array of this process that lies as the receive's does, on the
        host or on such a device; by default `array`.

        Examples
        --------
        >>> import numpy as np
        >>> from quadriga import message
        >>> with message.world() as comm:
        ...     [path.name for path in comm.predict(np.zeros(10), 0)]
        ['copy']
        """
        return [PredictedPath(*each) for each in self.core.predict(array, dest, layout, into)]

    def tasks(self, engine: Engine) -> MessageTasks:
        """Messages of this communicator as tasks of an engine, on its `Data`."""
        return MessageTasks(self, engine)

    def close(self, deadline: float = 5.0) -> None:
        """Leave the world, once own sends have been received; communicators of it end as well.

        Of what `Split` made it does nothing: the others of the world are still needed.
        """
        if self._is_part:
            return
        left = self.core.close(deadline)
        _worlds.discard(self)
        if left:
            warnings.warn(_shortened(left), RuntimeWarning, stacklevel=2)

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Nobody waits for what a failed program has sent.
        if self._is_world:
            self.close(5.0 if error is None else 0.0)

    def __repr__(self) -> str:
        return f"Communicator(rank={self.rank}, size={self.size})"

    def _limit(self, deadline: float | None = None) -> float:
        """The seconds of a call, or else the communicator's; to the core, less than 0 is no end."""
        return limit_of(self.deadline if deadline is None else deadline)

    def _collective(
        self,
        kind: str,
        sent: MessageArray | None,
        received: MessageArray | None,
        deadline: float | None,
        root: int = -1,
        op: str = "sum",
        reproducible: bool = False,
        layout: Layout | None = None,
        counts: Sequence[int] = (),
    ) -> None:
        limit = self._prepared(kind, lambda: self._limit(deadline), None)
        self.core.collective(
            kind, sent, received, layout, root, op, reproducible, list(counts), limit
        )
        mapped.check()

    def _parts(self, array: MessageArray) -> Any:
        return empty(array, (self.size, *shape_of(array)))


def as_world(core: MessageCommunicator, deadline: float | None) -> Communicator:
    """A communicator that Python's end closes."""
    if core.size > 1:
        cuda_libraries.tell_of_nccl()
    made = Communicator(core, deadline)
    made._is_world = True
    _worlds.add(made)
    return made


def waitall(requests: Iterable[Request], deadline: float | None = None) -> list[MessageStatus]:
    """Wait for all of several requests, `deadline` seconds for all together."""
    begin = time.monotonic()
    return [each.wait_since(begin, deadline) for each in requests]


def _shortened(left: str) -> str:
    """A list of messages, of which there may be thousands."""
    parts = left.split(", send ")
    more = len(parts) - _MOST_NAMED
    return left if more <= 0 else ", send ".join(parts[:_MOST_NAMED]) + f" and {more} more"


@atexit.register
def _close_all() -> None:
    for each in list(_worlds):
        try:
            each.close()
        except Exception as error:  # a child after fork(), or a world that failed
            _log.debug("a communicator didn't close: %s", error)
