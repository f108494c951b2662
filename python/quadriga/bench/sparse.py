# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/sparse.py: sparse products by format, and whole solves, beside SciPy's.
"""Measured in this process, in turn with SciPy: medians of several passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np

from .. import sparse
from ..arguments import whole
from ..engine import Engine
from ..sparse.matrices import need_scipy

_STENCILS = (7, 27)
_FORMATS = ("csr", "sell")
CASES = [
    *(f"{layout}-{points}" for points in _STENCILS for layout in _FORMATS),
    *(f"cg-{points}" for points in _STENCILS),
]
_ITERATIONS = 20
_READ_BYTES = 1 << 28

Row = dict[str, Any]


def run(case: str, order: int, repeat: int, devices: str) -> Iterator[Row]:
    """The row of a case: a grid of `order` points in each of three dimensions."""
    need_scipy("quadriga bench spmv")
    whole("n", order, 1, 1 << 12)
    kind, points = case.split("-")
    a = sparse.poisson((order,) * 3, int(points))
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    with Engine(devices) as engine:
        layout = "auto" if kind == "cg" else kind
        solver = sparse.Solver(a, format=layout, engine=engine)
        row = _solve(solver, a, b, repeat) if kind == "cg" else _product(solver, a, b, repeat)
        cores = sum(device.cores for device in engine.machine.devices) or 1
    matrix = a.nnz * (a.dtype.itemsize + 4)
    # A product reads the matrix and one vector, and writes one; an iteration moves 13 more.
    moved = matrix + a.shape[0] * a.dtype.itemsize * (15 if kind == "cg" else 2)
    row["bound"] = 2 * a.nnz / (moved / _read_rate(cores)) / 1e9
    yield {"case": case, "unit": "GFLOP/s", "n": a.shape[0], "elements": a.nnz, **row}


def _product(solver: Any, a: Any, b: Any, repeat: int) -> Row:
    ours, theirs = _in_turn(lambda: solver @ b, lambda: a @ b, repeat)
    flops = 2 * a.nnz / 1e9
    plan = solver.plan
    return {
        "value": flops / ours,
        "reference": "SciPy, one thread",
        "reference_value": flops / theirs,
        "seconds": ours,
        "matrix_bytes": sum(plan["bytes"]),
        "setup_seconds": plan["seconds"],
        "runs": repeat,
    }


def _solve(solver: Any, a: Any, b: Any, repeat: int) -> Row:
    """Iterations of a solve that ends at its limit; a product's flops each."""
    from scipy.sparse.linalg import cg

    options: dict[str, Any] = {"rtol": 0, "maxiter": _ITERATIONS}
    ours, theirs = _in_turn(lambda: solver.solve(b, **options), lambda: cg(a, b, **options), repeat)
    flops = 2 * a.nnz * _ITERATIONS / 1e9
    return {
        "value": flops / ours,
        "reference": "SciPy's cg",
        "reference_value": flops / theirs,
        "seconds": ours / _ITERATIONS,
        "setup_seconds": solver.plan["seconds"],
        "runs": repeat,
    }


def _in_turn(
    ours: Callable[[], object], theirs: Callable[[], object], repeat: int
) -> tuple[float, float]:
    ours()
    theirs()
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(repeat)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _read_rate(cores: int) -> float:
    """Bytes a second that so many threads read together, the best of three passes."""
    parts = np.array_split(np.ones(_READ_BYTES // 8), cores)
    with ThreadPoolExecutor(cores) as pool:
        return _READ_BYTES / min(_seconds(lambda: list(pool.map(np.sum, parts))) for _ in range(3))
