# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/overlap.py: overlap of copies and kernels, predicted and reached.
"""The engine's counters before and after a solve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..counters import DeviceCounters
from ..engine import Engine


def counted(engine: Engine, plan: dict[str, Any]) -> tuple[DeviceCounters, ...]:
    """Of the devices between which parts are copied while they compute; else none.

    Cores share their memory, and in recorded iterations kernels read what others have.
    """
    devices = set(plan["devices"])
    has_copies = plan["streamed_bytes"] > 0 or (len(devices) > 1 and not plan["recorded"])
    return tuple(engine.counters().devices) if has_copies and -1 not in devices else ()


def overlap_reached(
    before: Sequence[DeviceCounters], after: Sequence[DeviceCounters]
) -> float | None:
    """The share of the overlap that was possible, on all devices together.

    None where nothing could overlap, or counters were reset in between.
    """
    reached = possible = 0.0
    for old, new in zip(before, after, strict=False):
        copying, computing, both = (
            getattr(new, name) - getattr(old, name)
            for name in ("copying_seconds", "computing_seconds", "overlap_seconds")
        )
        if min(copying, computing, both) < 0:
            return None
        reached += both
        possible += min(copying, computing)
    return min(1.0, reached / possible) if possible > 0 else None


def with_slowest(way: dict[str, Any]) -> dict[str, Any]:
    """With the times of the slowest part, and what overlap can save of them."""
    in_turn, overlapped, reachable = (
        max((part[key] for part in way["parts"]), default=0.0)
        for key in ("in_turn_seconds", "overlapped_seconds", "reachable_seconds")
    )
    gain = 1 - overlapped / in_turn if in_turn > 0 else 0.0
    return {
        **way,
        "in_turn_seconds": in_turn,
        "overlapped_seconds": overlapped,
        "reachable_seconds": reachable,
        "largest_gain": gain,
    }
