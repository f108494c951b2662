# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/rerun.py: the tasks of a trace run again, on a machine that isn't here.
"""Submits a trace's tasks to another engine: a user's own program on a described machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _core
from ..engine import Engine
from ..errors import Error
from .trace.header import TraceError
from .trace.trace import KERNEL, Trace

_AT_ONCE = 5000  # tasks between two looks at signals


@dataclass(frozen=True)
class Rerun:
    """What ran again.

    Attributes
    ----------
    tasks : int
        How many.
    as_measured : int
        Of these, those that state no cost, or run on the host: they take as long as in the trace.
    """

    tasks: int
    as_measured: int


def rerun(trace: Trace, engine: Engine, progress: Callable[[float], object] | None = None) -> Rerun:
    """Run the tasks of a trace again, without data, on an engine under the virtual clock.

    Operands, order of submission, priorities and costs are those of the trace; owners are too if
    the machine has as many devices as the trace's. What a body submitted is submitted as if the
    program had.

    Parameters
    ----------
    trace : Trace
        See `load`.
    engine : Engine
        Made with ``virtual_clock=True, compute=False``; its counters and trace are of this run.
    progress : callable, optional
        Called with the part of the tasks that was submitted.

    Raises
    ------
    TraceError
        If the trace lacks the operands of its tasks (an older version wrote it), or they are
        damaged.
    InvalidArgument
        If the engine is another one, or its machine lacks a kernel of the trace.
    """
    tasks: list[dict[str, Any]] = trace.header.get("tasks") or []
    data = trace.header.get("data")
    if not isinstance(data, list) or any("operands" not in task for task in tasks):
        raise TraceError(
            f"{trace.path}: doesn't say what its tasks access; expected a trace of this version"
        )
    count = len((trace.header.get("machine") or {}).get("devices") or [])
    keeps_owners = count == len(engine.machine.devices)
    seconds = _seconds(trace)
    try:
        again = _core.Rerun(engine.core, [_data(each) for each in data])
        for begin in range(0, len(tasks), _AT_ONCE):
            part = tasks[begin : begin + _AT_ONCE]
            again.submit([_task(task, seconds, keeps_owners) for task in part])
            if progress is not None:
                progress(min(1.0, (begin + _AT_ONCE) / len(tasks)))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, Error):
            raise
        raise TraceError(f"{trace.path}: its tasks or data are damaged ({error})") from error
    engine.wait()
    return Rerun(len(tasks), sum(_is_measured(task) for task in tasks))


def _seconds(trace: Trace) -> dict[int, float]:
    spans = trace.spans
    kernels = spans.kind == KERNEL
    times = zip(spans.task[kernels].tolist(), spans.duration[kernels].tolist(), strict=True)
    return {task: duration * 1e-9 for task, duration in times}


def _is_measured(task: dict[str, Any]) -> bool:
    """Descriptions have no times of kernels on hosts that only serve devices."""
    return "cost" not in task or bool(task.get("host_only"))


def _data(each: list[Any]) -> tuple[int, int, int, _core.DType, bool]:
    rows, cols, ld, dtype, homed = each
    return int(rows), int(cols), int(ld), _core.DType[dtype], bool(homed)


def _task(task: dict[str, Any], seconds: dict[int, float], keeps_owners: bool) -> Any:
    cost = None if _is_measured(task) else task["cost"]
    return (
        task["id"],
        task["name"],
        [(data, _core.Access[access].value) for data, access in task["operands"]],
        (cost[0], float(cost[1]), float(cost[2])) if cost else None,
        seconds.get(task["id"], 0.0),
        task.get("priority", 0),
        task.get("owner") if keeps_owners else None,
        task.get("host_only", False),
        task.get("follows", []),
        task.get("final", []),
        task.get("workspace", 0),
    )
