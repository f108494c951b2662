# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/summary.py: the run as a dictionary, and as a few lines.
"""The summary of a run: time, distance to the bound, the limit, overlap."""

from __future__ import annotations

from typing import Any

from .. import formats
from ..trace.trace import Trace
from .analysis import Analysis
from .bound import table_seconds
from .counters import COUNTED, check
from .gaps import CAUSES
from .part import runs
from .sight import sight

_LATE = 0.02  # of a run

LIMITS = {
    "work_seconds": "work",
    "critical_path_seconds": "the longest chain of tasks",
    "link_seconds": "the link",
}


def summary(trace: Trace) -> dict[str, Any]:
    """What a run did, as plain values for JSON.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    dict
        ``seconds``, ``bound``, ``overlap``, ``bytes``, ``devices``, ``kernels``, ``copies`` and
        ``totals``, with units in the names of their keys; ``pipelines`` (statistics of each);
        ``late`` (the time that passed before the host saw several operations end),
        ``disagreements`` (text; empty if the counters agree with the events), ``part`` (which part
        of a trace, in words) and ``runs`` (how many the whole trace has); ``file``, ``clock``,
        ``policy`` and ``devices_requested``.
    """
    return summarize(Analysis(trace))


def summarize(run: Analysis) -> dict[str, Any]:
    """The same from figures that exist already."""
    trace = run.trace
    reached = sum(use.hidden for use in run.devices) / 1e9
    possible = sum(use.overlap_possible for use in run.devices) / 1e9
    counted = trace.counters["devices"]
    return {
        "file": trace.path,
        "part": trace.part or None,
        "runs": len(runs(trace.whole or trace)),
        "seconds": trace.seconds,
        "clock": trace.header.get("clock", "real"),
        "policy": trace.header.get("policy", ""),
        "devices_requested": trace.header.get("devices_requested", ""),
        "bound": _bound(run),
        "late": sight(trace).facts(trace.end),
        "overlap": {
            "seconds": reached,
            "possible_seconds": possible,
            "fraction": reached / possible if possible else None,
        },
        "bytes": run.bytes_moved(),
        "devices": [_device(run, index) for index in range(len(run.devices))],
        "kernels": run.kernels(),
        "copies": run.copies(),
        "totals": {key: sum(device.get(key, 0) for device in counted) for key in COUNTED},
        "pipelines": trace.pipelines,
        "disagreements": [str(found) for found in check(trace)],
    }


def _bound(run: Analysis) -> dict[str, Any] | None:
    if run.bound is None:
        return None
    seconds, binding = run.bound
    given = run.trace.bound
    parts = {key: float(given.get(key) or 0) for key in LIMITS}
    limit = LIMITS[binding]
    if binding == "link_seconds" and given.get("link"):
        limit += f" {given['link']}"
    return {
        "seconds": seconds,
        "ratio": run.trace.seconds / seconds,
        "limit": limit,
        "binding": binding,
        "link": given.get("link"),
        "table_seconds": table_seconds(run.trace),
        **parts,
    }


def _device(run: Analysis, index: int) -> dict[str, Any]:
    use = run.devices[index]
    each = 1e9 * len(use.units)
    idle = (use.waited, use.not_ready, use.not_started, use.finished)
    return {
        "name": use.name,
        "use": use.share(run.trace.end),
        "computing_seconds": use.computing / each,
        "idle_seconds": {cause: part / each for cause, part in zip(CAUSES, idle, strict=True)},
        "overlap_seconds": use.hidden / each,
        "overlap_possible_seconds": use.overlap_possible / 1e9,
        "phases": phases.facts() if (phases := run.phases.get(use.pid)) else None,
    }


def verdict(facts: dict[str, Any]) -> tuple[str, str]:
    """The run in a sentence, and its largest loss in another (empty if there is none)."""
    devices = formats.plural(len(facts["devices"]), "device")
    text = f"{formats.time(facts['seconds'])} on {devices}"
    if facts["bound"]:
        text += f", {above(facts['bound']['ratio'])} set by {facts['bound']['limit']}"
    if facts["overlap"]["fraction"] is not None:
        text += f". {formats.share(facts['overlap']['fraction'])} of the possible overlap reached"
    return text + ".", largest_loss(facts)


def above(ratio: float) -> str:
    """How far a time is from its bound, in words."""
    if ratio < 1:
        return f"{formats.share(1 - ratio)} below the bound"
    if ratio < 1.0005:
        return "on the bound"
    if ratio >= 3:
        return f"{formats.significant(ratio)} times the bound"
    return f"{formats.share(ratio - 1)} above the bound"


def largest_loss(facts: dict[str, Any]) -> str:
    losses = [
        (seconds, device["name"], cause)
        for device in facts["devices"]
        for cause, seconds in device["idle_seconds"].items()
    ]
    lost, name, cause = max(losses, default=(0.0, "", ""))
    if lost <= 0.005 * facts["seconds"]:
        return ""
    total = sum(seconds for seconds, _, other in losses if other == cause)
    one = len(facts["devices"]) == 1
    words = {
        CAUSES[0]: "waited {} for copies",
        CAUSES[1]: "had nothing ready for {}",
        CAUSES[2]: "left ready tasks unstarted for {}",
        CAUSES[3]: f"{'was' if one else 'were'} finished {{}} before the end",
    }[cause].format(formats.time(total))
    if one:
        return f"Largest loss: {name} {words}."
    return f"Largest loss: devices {words} in all ({formats.time(lost)} of it on {name})."


def summary_text(trace: Trace, width: int = 24) -> str:
    """The summary as text for a terminal, without colour.

    Parameters
    ----------
    trace : Trace
    width : int
        Length of a full bar, in characters.

    Returns
    -------
    str
    """
    facts = summary(trace)
    sentence, loss = verdict(facts)
    lines = [sentence] + ([loss] if loss else []) + _part_lines(facts) + _late_lines(facts) + [""]
    lines += _bound_lines(facts, width)
    names = max([len(device["name"]) for device in facts["devices"]] + [6])
    for device in facts["devices"]:
        bar = _bar(device["use"], width)
        overlap = formats.share(device["overlap_seconds"], device["overlap_possible_seconds"])
        use = formats.share(device["use"])
        lines.append(f"  {device['name']:<{names}} {bar} {use:>6} computing, overlap {overlap}")
    moved = facts["bytes"]
    lines.append(
        f"  moved  {formats.size(moved['in'])} in, {formats.size(moved['out'])} out,"
        f" {formats.size(moved['peer'])} between devices"
    )
    if moved["to_file"] or moved["from_file"]:
        there, back = formats.size(moved["to_file"]), formats.size(moved["from_file"])
        lines.append(f"  spill  {there} to the file, {back} back")
    totals = facts["totals"]
    counted = ", ".join(f"{formats.count(totals[key])} {key.replace('_', '-')}" for key in COUNTED)
    lines.append(f"  counts {counted}")
    lines += [f"  stream {stream_text(stream)}" for stream in facts["pipelines"]]
    lines += [f"  ! {found}" for found in facts["disagreements"]]
    return "\n".join(lines) + "\n"


def stream_text(stream: dict[str, Any]) -> str:
    """What a pipeline did, in a sentence."""
    rate = stream["chunks"] / stream["seconds"] if stream["seconds"] > 0 else 0.0
    text = (
        f"{formats.count(stream['chunks'])} chunks in {formats.time(stream['seconds'])}, "
        f"{formats.significant(rate)} a second; latency {formats.time(stream['latency_median'])}, "
        f"of 99 % at most {formats.time(stream['latency_99'])}"
    )
    told = {
        "failed": "skipped",
        "dropped": "dropped by filters",
        "missed": "dropped at the source, for which there was no room",
        "repeated": "run again after the loss of a device",
    }
    for key, words in told.items():
        if stream.get(key):
            text += f"; {formats.count(stream[key])} {words}"
    if stream["bound_seconds"] > 0:
        over = above(stream["seconds"] / stream["bound_seconds"])
        text += f". {stream['limit']} limits: {over} of {formats.time(stream['bound_seconds'])}"
    return text


def _part_lines(facts: dict[str, Any]) -> list[str]:
    """Which part of a trace this is; of a whole one with several runs, that there are several."""
    if facts["part"]:
        return [f"This is {facts['part']}."]
    if facts["runs"] > 1:
        return [f"It holds {facts['runs']} runs; --run 1 shows the first, --run last the last."]
    return []


def _late_lines(facts: dict[str, Any]) -> list[str]:
    late = facts["late"]
    if not is_late(facts):
        return []
    share, longest = formats.share(late["share"]), formats.time(late["longest_seconds"])
    return [
        f"Operations were seen to end late: {share} of the time passed before ends of several"
        f" streams were seen at once, {longest} the longest."
    ]


def is_late(facts: dict[str, Any]) -> bool:
    """Whether the host saw ends so late that times in the trace are unreliable."""
    return bool(facts["late"]["share"] > _LATE)


def _bound_lines(facts: dict[str, Any], width: int) -> list[str]:
    if not facts["bound"]:
        return []
    names = {"work_seconds": "work", "critical_path_seconds": "path", "link_seconds": "link"}
    longest = max(facts["seconds"], *(facts["bound"][key] for key in names), 1e-12)
    rows = [("time", facts["seconds"])] + [
        (n, facts["bound"][k]) for k, n in names.items() if facts["bound"][k]
    ]
    return [
        f"  {name:<6} {_bar(seconds / longest, width)} {formats.time(seconds):>8}"
        for name, seconds in rows
    ] + [""]


def _bar(fraction: float, width: int) -> str:
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8)
    full, part = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(width, "·")
