# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/simulated.py: one run of a call, or of a trace's tasks, by the virtual clock.
"""What `quadriga simulate` runs, and what a run gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from .. import _core, linalg
from ..counters import Counters
from ..engine import Engine
from ..errors import InvalidArgument, Unavailable
from ..linalg.estimates import Estimate, Operation, flops
from ..report import Rerun, Trace, rerun
from ..settings import config


@dataclass(frozen=True)
class Run:
    """What is simulated: a call, on a machine with some of its figures replaced."""

    operation: Operation | None  # None: the tasks of a trace.
    sizes: tuple[int, ...]
    recorded: Trace | None
    machine: str
    devices: int | None
    memory: str | None
    link: str | None
    policy: str | None
    tile: int | None
    dtype: str
    accumulate: bool
    seed: int
    eviction: str | None = None
    believed: str | None = None  # By which description plans go, if not by the machine's.

    @property
    def device_list(self) -> str:
        """As an engine takes it."""
        parts = [self._first_of(self.machine)]
        if self.memory:
            parts.append(f"memory={self.memory}")
        if self.link:
            parts += [f"h2d={self.link}", f"d2h={self.link}"]
        return ",".join(parts)

    @property
    def believed_list(self) -> str | None:
        """The same devices by the other description."""
        return self._first_of(self.believed) if self.believed else None

    def _first_of(self, file: str) -> str:
        return f"machine={file}" + (f":{self.devices}" if self.devices else "")

    def changed(self, key: str, value: Any) -> Run:
        """With another value of what a sweep may change."""
        if key == "n":
            right = self.sizes[1:] if self.operation == "cho_solve" else ()
            sizes = (value,) * 3 if self.operation == "matmul" else (value, *right)
            return replace(self, sizes=sizes)
        return replace(self, **{key: value})


@dataclass(frozen=True)
class Outcome:
    """What a run gave."""

    run: Run
    counters: Counters
    estimate: Estimate | None  # None of a trace.
    again: Rerun | None

    @property
    def seconds(self) -> float:
        return self.estimate.seconds if self.estimate else self.counters.elapsed_seconds

    @property
    def flops_rate(self) -> float | None:
        """Operations a second."""
        if self.run.operation is None or not self.seconds:
            return None
        return flops(self.run.operation, *self.run.sizes, dtype=self.run.dtype) / self.seconds

    @property
    def of_bound(self) -> float | None:
        """The least possible time over the run's."""
        if self.estimate is None or not self.seconds:
            return None
        return self.estimate.bound_seconds / self.seconds

    def as_dict(self) -> dict[str, Any]:
        run, rate = self.run, self.flops_rate
        found: dict[str, Any] = {
            "operation": run.operation or "trace",
            "devices": run.device_list,
            "policy": run.policy,
            "eviction": run.eviction or config["eviction"],
        }
        if run.believed:
            found["believed"] = run.believed
        if self.estimate is None or rate is None:
            found["seconds"] = self.seconds
            found["host_bytes"] = self.counters.host_bytes
            if self.again is not None:
                found |= {"tasks": self.again.tasks, "as_measured": self.again.as_measured}
            return found
        found |= {"sizes": list(run.sizes), "dtype": run.dtype}
        found |= {"gflops": rate / 1e9, "of_bound": self.of_bound}
        return found | self.estimate.as_dict()

    def __str__(self) -> str:
        if self.estimate is None:
            lines = [
                f"time             {_core.format_seconds(self.seconds)}",
                f"moved            {_core.format_bytes(self.counters.host_bytes)} between host and "
                "devices",
            ]
        else:
            lines = [str(self.estimate)]
        if self.flops_rate is not None and self.of_bound is not None:
            lines.append(
                f"rate             {self.flops_rate / 1e9:,.1f} GFLOP/s, "
                f"{100 * self.of_bound:.0f} % of the bound"
            )
        if self.again is not None:
            lines.append(f"tasks            {self.again.tasks}, as the trace has them")
            if self.again.as_measured:
                lines.append(
                    f"                 {self.again.as_measured} take as long as there: they state "
                    "no cost, or run on the host"
                )
        return "\n".join(lines)


def perform(
    run: Run, trace: Path | None = None, progress: Callable[[float], object] | None = None
) -> Outcome:
    """Simulates one run; `progress` is called with the part that is done."""
    try:
        with config(eviction=run.eviction or config["eviction"]):
            made = Engine(
                run.device_list,
                policy=run.policy,
                virtual_clock=True,
                compute=False,
                seed=run.seed,
                trace=trace if trace is not None else False,
                believed=run.believed_list,
            )
    except (InvalidArgument, Unavailable) as error:
        raise click.UsageError(str(error)) from error
    with made as engine:
        found, again = None, None
        if run.operation is not None:
            found = linalg.simulate(
                run.operation,
                *run.sizes,
                engine=engine,
                dtype=run.dtype,
                accumulate=run.accumulate,
                tile=run.tile,
                progress=progress,
            )
        elif run.recorded is not None:
            again = rerun(run.recorded, engine, progress)
        named = replace(run, policy=run.policy or "default")
        return Outcome(named, engine.counters(), found, again)
