# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/prediction.py: which path a message takes, and how long each would take.
"""Paths of a message and their predicted seconds."""

from __future__ import annotations

from typing import NamedTuple


class PredictedPath(NamedTuple):
    """One path that a message may take; of exactly one of them `is_chosen` holds.

    Attributes
    ----------
    name : str
        "slot": copied through a shared slot. "read": the receiver reads the sender's memory in
        place. "pieces": through shared pieces. "mapped": the receiver's device copies from the
        sender's memory. "staged": from a device by way of the host. "copy": within a rank.
    seconds : float or None
        One way, to a receive that was posted before: by this host's measured rate of copies, and
        by what a machine's links state. None where no rate is known.
    is_chosen : bool
        Whether a message sent now takes it.
    why : str
        The reason.
    """

    name: str
    seconds: float | None
    is_chosen: bool
    why: str
