# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/from_python.py: what tasks, accesses and stages cost a program in Python.
"""Measured in this process: best of several passes, for others run on the same cores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..codelets import codelet
from ..engine import Engine
from ..pipeline import Pipeline

CASES = ("python-chains", "register-again", "on-host", "residency")
STAGES = ("python-parallel", "python-serial_in_order")
_TASKS, _CHAINS, _CALLS = 10_000, 64, 20_000
_STEPS, _TILES, _ORDER = 100, 64, 128
_CHUNKS, _EMPTY_STAGES = 10_000, 4


def run(case: str, repeat: int, cores: int) -> Iterator[dict[str, Any]]:
    """The row of a case."""
    measured = {
        "python-chains": lambda: _chains(cores),
        "register-again": _register_again,
        "on-host": _on_host,
    }
    if case == "residency":
        yield _residency(repeat)
        return
    values = [measured[case]() for _ in range(repeat)]
    unit = "ns/task" if case == "python-chains" else "ns/call"
    yield {"case": case, "value": min(values), "unit": unit, "bound": 0.0, "runs": repeat}


def stage(case: str, repeat: int, cores: int) -> dict[str, Any]:
    """The row of a case of `STAGES`: empty stages of a stream, by the clock, source included."""
    mode = case.removeprefix("python-")

    def work() -> None:
        pipeline = Pipeline(devices=f"cpu:{cores}").source({"number": n} for n in range(_CHUNKS))
        for s in range(_EMPTY_STAGES):
            pipeline.map(_nothing, mode=mode, name=f"empty {s}")
        pipeline.run()

    best = min(_seconds(work) for _ in range(repeat))
    return {
        "case": case,
        "value": best / _CHUNKS / _EMPTY_STAGES * 1e6,
        "unit": "us a stage",
        "bound": 0.0,
        "stages": _EMPTY_STAGES,
        "runs": repeat,
    }


def _chains(cores: int) -> float:
    """Nanoseconds for each empty task, submitted and ended, in chains."""
    nothing = codelet(access=["update"], name="nothing")(_nothing)
    with Engine(f"cpu:{cores}") as engine:
        operands = [engine.data(np.zeros(1)).update() for _ in range(_CHAINS)]

        def work() -> None:
            for i in range(_TASKS):
                engine.submit(nothing, operands[i % _CHAINS])
            engine.wait()

        work()
        return _seconds(work) / _TASKS * 1e9


def _nothing(x: Any) -> None:
    pass


def _register_again() -> float:
    with Engine("emulated:2,memory=16MiB") as engine:
        x = np.zeros(8)
        held = engine.data(x)
        found = _seconds(lambda: [engine.data(x) for _ in range(_CALLS)]) / _CALLS * 1e9
        assert engine.data(x) == held
        return found


def _on_host() -> float:
    """Nanoseconds for an access to resident data that no task has accessed meanwhile."""
    with Engine("emulated:2,memory=16MiB") as engine:
        data = engine.data(np.zeros(8), resident=True)

        def touch() -> None:
            for _ in range(_CALLS):
                with data.on_host("rw"):
                    pass

        return _seconds(touch) / _CALLS * 1e9


def _residency(repeat: int) -> dict[str, Any]:
    """An iterative program in which the host reads one scalar a step, by one in which it doesn't.

    They run in turn, so that both meet the same load of the machine; the best of each counts.
    """
    seconds = [(_steps(False), _steps(True)) for _ in range(repeat)]
    without_access, with_access = (min(each) for each in zip(*seconds, strict=True))
    return {
        "case": "residency",
        "value": with_access / without_access,
        "unit": "s/s",
        "bound": 1.0,
        "seconds_without_access": without_access,
        "runs": repeat,
    }


def _steps(reads: bool) -> float:
    relax = codelet(access=["update"], name="relax", host_only=False)(_relax)
    norm = codelet(access=["read", "write"], name="norm", host_only=False)(_norm)
    tiles = [np.ones((_ORDER, _ORDER)) for _ in range(_TILES)]
    with Engine("emulated:2,memory=64MiB") as engine:
        data = [engine.data(tile, resident=True) for tile in tiles]
        scalar = engine.data(np.zeros(1), resident=True)

        def work() -> None:
            for _ in range(_STEPS):
                for each in data:
                    engine.submit(relax, each.update())
                engine.submit(norm, data[0].read(), scalar.write(), priority=1)
                if reads:
                    with scalar.on_host("r") as found:
                        float(found[0])
            engine.wait()

        return _seconds(work)


def _relax(x: Any) -> None:
    for _ in range(4):
        x[...] = x @ x * 1e-3 + 1


def _norm(x: Any, total: Any) -> None:
    total[0] = x.sum()


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
