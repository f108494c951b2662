# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/times.py: where the time of a collective went.
"""Times of a collective's phases and steps on this rank."""

from __future__ import annotations

from typing import NamedTuple


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
    steps: list[StepTime]
