# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/sparse.py: sparse products by format, and whole solves, beside others'.
"""Measured in this process, in turn with others: medians of several passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np

from .. import sparse
from ..arguments import whole
from ..engine import Engine
from ..errors import InvalidArgument
from ..sparse.matrices import need_scipy, read_matrix
from . import sparse_peers
from .elasticity import box_stiffness

_STENCILS = ("7", "27")
_MATRICES = (*_STENCILS, "elastic", "random", "file")
_FORMATS = ("csr", "sell", "blocks", "ellpack")
CASES = [
    *(f"{layout}-{matrix}" for matrix in _MATRICES for layout in _FORMATS),
    *(f"cg-{points}" for points in _STENCILS),
]
_ITERATIONS = 20
_READ_BYTES = 1 << 28
_RANDOM_ELEMENTS = 16  # In a row.
#: A measurement of a product lasts about so long.
_SECONDS = 0.1
_MOST_PRODUCTS = 500

Row = dict[str, Any]


def run(case: str, order: int, repeat: int, devices: str, path: str | None = None) -> Iterator[Row]:
    """The row of a case: a grid of `order` points in each of three dimensions, or a file's matrix.

    What doesn't fit has no value; ``refused`` says why.
    """
    need_scipy("quadriga bench spmv")
    whole("n", order, 1, 1 << 12)
    kind, _, name = case.partition("-")
    a = _matrix(name, order, path)
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    row: Row = {"case": case, "unit": "GFLOP/s", "n": a.shape[0], "elements": a.nnz}
    with Engine(devices) as engine:
        refused = _refusal(kind, a, engine)
        if refused:
            yield {**row, "value": None, "bound": None, "refused": refused}
            return
        layout = "auto" if kind == "cg" else kind
        try:
            solver = sparse.Solver(a, format=layout, engine=engine)
        except InvalidArgument as error:
            yield {**row, "value": None, "bound": None, "refused": str(error)}
            return
        row |= _solve(solver, a, b, repeat) if kind == "cg" else _product(solver, a, b, repeat)
        gpus = sum(device.kind == "cuda" for device in engine.machine.devices)
        cores = sum(device.cores for device in engine.machine.devices) or 1
        rate = sparse_peers.gpu_read_rate() * gpus if gpus else _read_rate(cores)
    if kind == "cg":
        # An iteration reads the matrix, and moves 15 vectors.
        moved = a.nnz * (a.dtype.itemsize + 4) + a.shape[0] * a.dtype.itemsize * 15
    else:
        # A product reads the matrix as it is stored and one vector, and writes one.
        moved = row["matrix_bytes"] + a.shape[0] * a.dtype.itemsize * 2
        row |= {"moved_bytes": moved, "bytes_per_second": moved / row["seconds"]}
    row |= {"bound": None, "read_bytes_per_second": rate or None}
    if rate:
        row["bound"] = 2 * a.nnz / (moved / rate) / 1e9
        row["share_of_read_rate"] = moved / row["seconds"] / rate
    yield row


@lru_cache(1)
def _matrix(name: str, order: int, path: str | None) -> Any:
    """The last one is kept for other formats."""
    if name == "file":
        if path is None:
            raise InvalidArgument("no matrix is given; expected --matrix FILE for cases of files")
        return read_matrix(path).tocsr()
    if name == "elastic":
        edge = max(2, order)
        return box_stiffness((edge + 1, edge, edge))
    if name == "random":
        return _random(order**3)
    return sparse.poisson((order,) * 3, int(name))


def _random(rows: int) -> Any:
    """So many elements a row, anywhere."""
    from scipy.sparse import csr_array

    random = np.random.default_rng(1)
    columns = random.integers(0, rows, rows * _RANDOM_ELEMENTS, dtype=np.int32)
    offsets = np.arange(0, columns.size + 1, _RANDOM_ELEMENTS)
    return csr_array((random.standard_normal(columns.size), columns, offsets), shape=(rows, rows))


def _refusal(layout: str, a: Any, engine: Engine) -> str:
    """Why a matrix isn't stored so; empty: it is."""
    longest = int(np.diff(a.indptr).max(initial=0))
    element = a.dtype.itemsize + 4
    if layout == "ellpack":
        size = a.shape[0] * longest * element
        return f"ELLPACK would take {size / 1e9:.3g} GB, CSR takes {a.nnz * element / 1e9:.3g}"
    memory = sum(each.memory_bytes or 0 for each in engine.machine.devices if each.kind != "cpu")
    if memory and a.nnz * element > memory:
        return f"CSR takes {a.nnz * element / 1e9:.3g} GB, devices have {memory / 1e9:.3g}"
    return ""


def _product(solver: Any, a: Any, b: Any, repeat: int) -> Row:
    """A product of vectors that stay on the devices; `call_seconds` also moves both."""
    once = solver.measure_product(2)
    count = int(min(max(_SECONDS / max(once, 1e-9), 2), _MOST_PRODUCTS))
    peers = sparse_peers.products(a, b, solver.engine)
    measured = [
        (solver.measure_product(count), {name: work(count) for name, work in peers.items()})
        for _ in range(repeat)
    ]
    ours = median(each for each, _ in measured)
    flops = 2 * a.nnz / 1e9
    theirs = {name: flops / median(found[name] for _, found in measured) for name in peers}
    best = max(theirs, key=lambda name: theirs[name])
    plan = solver.plan
    calls = [_seconds(lambda: solver @ b) for _ in range(repeat + 1)]
    return {
        "value": flops / ours,
        "reference": best,
        "reference_value": theirs[best],
        "peers": theirs,
        "seconds": ours,
        "call_seconds": median(calls[1:]),
        "matrix_bytes": sum(plan["bytes"]),
        "bytes_per_element": sum(plan["bytes"]) / max(1, a.nnz),
        "dense_rows": plan["dense_rows"],
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
