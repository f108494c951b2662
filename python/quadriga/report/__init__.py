# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/__init__.py: reports on trace files.
"""Reports on traces: an HTML page, a picture, a summary, exports, and a check of the counters.

Examples
--------
>>> from quadriga import report
>>> trace = report.load("trace.json")                # doctest: +SKIP
>>> print(report.summary_text(trace))                # doctest: +SKIP
>>> report.write_report("trace.json", "report.html") # doctest: +SKIP
"""

from .analysis.counters import Disagreement, check, recount
from .analysis.part import part, runs
from .analysis.summary import summary, summary_text
from .render.export import to_dot, to_perfetto
from .render.page import to_html, write_report
from .render.picture import to_svg
from .render.world import to_world_html
from .rerun import Rerun, rerun
from .trace.header import TraceError
from .trace.reading import load
from .trace.trace import Trace

__all__ = [
    "Disagreement",
    "Rerun",
    "Trace",
    "TraceError",
    "check",
    "load",
    "part",
    "recount",
    "rerun",
    "runs",
    "summary",
    "summary_text",
    "to_dot",
    "to_html",
    "to_perfetto",
    "to_svg",
    "to_world_html",
    "write_report",
]


def __dir__() -> list[str]:
    return __all__
