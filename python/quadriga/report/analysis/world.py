# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/world.py: the traces of several ranks on one clock, and which
# send met which receive.
"""Traces of a world's ranks, joined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..trace.header import TraceError
from ..trace.trace import Message, Trace


@dataclass(frozen=True)
class Arrow:
    """A message from its sender to its receiver, on the world's clock, in nanoseconds."""

    source: int
    target: int
    start: int  # of the send
    end: int  # of the receive
    tag: int
    bytes: int


@dataclass(frozen=True)
class World:
    """Traces by rank, the time of each one's zero on the common clock, and their messages."""

    ranks: dict[int, Trace]
    offsets: dict[int, int]
    arrows: list[Arrow]
    unmatched: int

    @property
    def end(self) -> int:
        """Nanoseconds that a time line of all must show."""
        return max(
            self.offsets[rank] + max([trace.end, *(m.end for m in trace.messages)])
            for rank, trace in self.ranks.items()
        )


def join(traces: Sequence[Trace]) -> World:
    """Put traces of the ranks of one world on one clock.

    Raises
    ------
    TraceError
        If a trace has no messages of tasks, two are of the same rank or of worlds of other sizes.
    """
    ranks: dict[int, Trace] = {}
    for trace in traces:
        world = trace.header.get("world")
        if world is None:
            raise TraceError(
                f"{trace.path}: has no messages of tasks; expected the traces of several ranks"
            )
        rank, size = int(world["rank"]), int(world["size"])
        if rank in ranks:
            raise TraceError(f"{trace.path}: is of rank {rank}, as {ranks[rank].path} is")
        for other in ranks.values():
            if other.header["world"]["size"] != size:
                raise TraceError(f"{trace.path}: is of {size} ranks, {other.path} is not")
        ranks[rank] = trace
    ranks = dict(sorted(ranks.items()))
    origins = {rank: int(trace.header["world"]["origin"]) for rank, trace in ranks.items()}
    offsets = {rank: origin - min(origins.values()) for rank, origin in origins.items()}
    arrows, unmatched = _arrows(ranks, offsets)
    return World(ranks, offsets, arrows, unmatched)


def _arrows(ranks: dict[int, Trace], offsets: dict[int, int]) -> tuple[list[Arrow], int]:
    """Messages of one pair, tag and communicator meet in the order in which they started."""
    Key = tuple[int, int, int, str]
    sent: dict[Key, list[Message]] = defaultdict(list)
    received: dict[Key, list[Message]] = defaultdict(list)
    for rank, trace in ranks.items():
        for each in sorted(trace.messages, key=lambda message: message.start):
            if each.failed or each.source not in ranks or each.target not in ranks:
                continue
            key = (each.source, each.target, each.tag, each.context)
            is_send = each.name.startswith("send")
            if rank == (each.source if is_send else each.target):
                (sent if is_send else received)[key].append(each)
    arrows, unmatched = [], 0
    for key in sorted(set(sent) | set(received)):
        pairs = list(zip(sent[key], received[key], strict=False))
        unmatched += len(sent[key]) + len(received[key]) - 2 * len(pairs)
        source, target, tag, _ = key
        for send, receive in pairs:
            start, end = send.start + offsets[source], receive.end + offsets[target]
            arrows.append(Arrow(source, target, start, max(start, end), tag, receive.bytes))
    return sorted(arrows, key=lambda arrow: arrow.start), unmatched
