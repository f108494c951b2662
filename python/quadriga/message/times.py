# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/times.py: where the time of a collective went.
"""Times of a collective's phases and steps on this rank, and who carried it out."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from .._core import MessageCommunicator


class StepTime(NamedTuple):
    """One step of a collective; times are seconds since it began.

    Attributes
    ----------
    kind : str
        "send", "receive", "copy" or "reduce".
    peer : int
        The other rank of a send or a receive, else -1.
    bytes : int
        Of the step's data.
    ready : float
        What it waited for had ended.
    begun : float
        Its turn came.
    queued : float
        The call that began it returned.
    matched : float
        A receive's message was there, so that its bytes could move.
    ended : float
        This rank saw its end.
    """

    kind: str
    peer: int
    bytes: int
    ready: float
    begun: float
    queued: float
    matched: float
    ended: float


class CollectiveTimes(NamedTuple):
    """A collective on this rank; times are seconds since it began.

    Attributes
    ----------
    kind : str
        Its name.
    plan : str
        Trees and segments; empty if it goes along none.
    planned : float
        Seconds that the plan takes its steps for.
    agreed : float
        All ranks had come, and said the same.
    packed : float
        What isn't side by side was; the steps began.
    moved : float
        The last step had ended.
    ended : float
        The result was where it belongs.
    by : str
        "messages", or NCCL with its version: it has no steps then.
    steps : list of StepTime
        In the order of the plan.
    """

    kind: str
    plan: str
    planned: float
    agreed: float
    packed: float
    moved: float
    ended: float
    by: str
    steps: list[StepTime]


class NcclReport(NamedTuple):
    """NCCL's part in a communicator's collectives.

    Attributes
    ----------
    version : str
        Such as "2.27.3"; empty if nothing asked for it yet.
    library : str
        Its file.
    absence : str
        Why it isn't used; empty if it is, or nothing asked for it.
    collectives : int
        Those that it carried out on this rank.
    """

    version: str
    library: str
    absence: str
    collectives: int


class Explained:
    """What a communicator says of its collectives."""

    core: MessageCommunicator

    def note_times(self, on: bool = True) -> None:
        """Note from now on where the time of each collective goes, for `times`."""
        self.core.note_times(on)

    def times(self) -> CollectiveTimes | None:
        """Where the time of this rank's last collective went; None if nobody noted it."""
        found = self.core.times()
        if found is None:
            return None
        *phases, steps = cast("tuple[Any, ...]", found)
        return CollectiveTimes._make([*phases, [StepTime(*each) for each in steps]])

    def nccl(self) -> NcclReport:
        """What of this communicator's collectives NCCL carried out, or why none."""
        return NcclReport._make(cast("tuple[Any, ...]", self.core.nccl()))
