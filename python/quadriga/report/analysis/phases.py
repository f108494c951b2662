# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/phases.py: when operands had come, and results were home.
"""The start and the end of a run, where a device can't be busy with everything at once.

Nothing can be computed before the first operands are there, and the last result goes home when
everything is computed. A short run consists of little else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..trace.trace import COPY, HOST, Trace
from .intervals import Intervals, busy_before


@dataclass(frozen=True)
class Phases:
    """Times of one device in nanoseconds from the run's start."""

    first_kernel: int
    last_operand: int  # when the last copy from the host ended
    last_kernel: int  # its end
    last_result: int  # when the last copy to it ended
    computing_before: int  # with a kernel until the last operand was there
    computing_after: int

    def share_before(self) -> float:
        """Of the time until the last operand was there, with a kernel."""
        return self.computing_before / max(self.last_operand, 1)

    def share_after(self) -> float | None:
        """Of the time from the last operand to the last kernel's end; None if that isn't later."""
        length = self.last_kernel - self.last_operand
        return self.computing_after / length if length > 0 else None

    def facts(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "first_kernel_seconds": self.first_kernel / 1e9,
            "last_operand_seconds": self.last_operand / 1e9,
            "last_kernel_seconds": self.last_kernel / 1e9,
            "last_result_seconds": self.last_result / 1e9,
            "computing_until_last_operand": self.share_before(),
            "computing_from_last_operand": self.share_after(),
        }


def phases(trace: Trace, pid: int, computing: Intervals) -> Phases | None:
    """Of a device that got operands from the host, computed, and sent results home; else None."""
    spans, own = trace.spans, trace.label(trace.devices[pid])
    copies, host = spans.take(spans.kind == COPY), trace.label(HOST)
    arrived = copies.end[(copies.source == host) & (copies.target == own)]
    home = copies.end[(copies.source == own) & (copies.target == host)]
    if min(len(arrived), len(home), len(computing.start)) == 0:
        return None
    last = int(arrived.max())
    before = int(busy_before(computing.start, computing.end, np.array([last]))[0])
    return Phases(
        first_kernel=int(computing.start[0]),
        last_operand=last,
        last_kernel=int(computing.end[-1]),
        last_result=int(home.max()),
        computing_before=before,
        computing_after=computing.length - before,
    )
