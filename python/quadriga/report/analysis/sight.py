# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/sight.py: when the host learnt late that operations had ended.
"""How late the host saw operations end.

Times of a real device are those at which the host saw an operation end. A busy host sees ends late,
and those of many streams at the same nanosecond, which doesn't happen otherwise. Meanwhile the work
that waits for the host is delayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..trace.trace import Trace

_STREAMS = 4  # whose operations end at once
_SILENCE = 100_000  # nanoseconds before, in which no end was seen


@dataclass(frozen=True)
class Sight:
    """Time that passed before ends of several streams were seen at once, in nanoseconds."""

    late: int
    longest: int
    longest_start: int

    def facts(self, end: int) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "seconds": self.late / 1e9,
            "share": self.late / end,
            "longest_seconds": self.longest / 1e9,
            "longest_start_seconds": self.longest_start / 1e9,
        }


def sight(trace: Trace) -> Sight:
    """How late the host saw what ended; all zero under the virtual clock, which sees everything."""
    spans = trace.spans
    if trace.header.get("clock") == "virtual" or len(spans) == 0:
        return Sight(0, 0, 0)
    stream = spans.pid * (int(spans.tid.max()) + 1) + spans.tid
    pairs = np.unique(np.stack((spans.end, stream)), axis=1)  # a stream counts once at a time
    ends, streams = np.unique(pairs[0], return_counts=True)
    before = np.concatenate(([int(spans.start.min())], ends[:-1]))
    silence = ends - before
    late = np.flatnonzero((streams >= _STREAMS) & (silence >= _SILENCE))
    if len(late) == 0:
        return Sight(0, 0, 0)
    longest = late[np.argmax(silence[late])]
    return Sight(int(silence[late].sum()), int(silence[longest]), int(before[longest]))
