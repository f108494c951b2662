# SPDX-License-Identifier: BSD-3-Clause
# bench/sparse_streamed.py: how near to its link's bound CG is with a matrix that doesn't fit.
"""One JSON line for each 27-point grid: an iteration's time by the bound, bytes by the link's rate.

usage: python bench/sparse_streamed.py [--machine FILE] [--share SHARE] SIZE...

The machine's first device gets the share of the matrix's bytes as its memory. Virtual clock.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import quadriga
from quadriga import sparse

ITERATIONS = 20


def described(path: Path, memory: int | None) -> quadriga.Machine:
    """The machine, its accelerators with so much memory."""
    found = json.loads(path.read_text())
    for device in found["devices"]:
        if device["kind"] != "cpu" and memory is not None:
            device["memory"] = memory
    return quadriga.Machine.from_json(json.dumps(found))


def from_host(engine: quadriga.Engine) -> int:
    return sum(link.bytes for link in engine.counters().links if link.source == 0)


def measure(path: Path, share: float, size: int) -> dict[str, object]:
    matrix = sparse.poisson((size, size, size), 27)
    with quadriga.Engine(described(path, None), virtual_clock=True) as engine:
        stored = sum(sparse.Solver(matrix, engine=engine).plan["bytes"])
    machine = described(path, int(share * stored))
    with quadriga.Engine(machine, virtual_clock=True) as engine:
        solver = sparse.Solver(matrix, engine=engine)
        right = np.ones(matrix.shape[0])
        solver.solve(right, maxiter=ITERATIONS)  # Buffers are kept.
        begin, before = engine.now(), from_host(engine)
        solver.solve(right, rtol=0, maxiter=ITERATIONS)
        seconds = (engine.now() - begin) / ITERATIONS
        bound = solver.plan["streamed_seconds"]
        return {
            "benchmark": "sparse streamed", "case": f"27-point {size}", "unit": "time / bound",
            "value": seconds / bound, "bound": 1, "seconds_an_iteration": seconds,
            "bound_seconds": bound, "matrix_mb": stored / 1e6,
            "mb_an_iteration": (from_host(engine) - before) / ITERATIONS / 1e6,
            "parts": len(solver.plan["devices"]), "machine": path.stem,
        }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="+", metavar="SIZE")
    parser.add_argument("--machine", type=Path, default=Path("machines/h200x1.json"))
    parser.add_argument("--share", type=float, default=0.25)
    given = parser.parse_args()
    for each in given.sizes:
        print(json.dumps(measure(given.machine, given.share, each)))
