# SPDX-License-Identifier: BSD-3-Clause
# bench/sparse_cores.py: a whole call of Jacobi-CG on two cores beside SciPy's, and what bounds it.
"""One JSON line for each case: how many times as fast a whole call of `cg` is as SciPy's.

usage: python bench/sparse_cores.py [--devices cpu:2] [--iterations N] [--rounds N] [CASE...]

Cases are `elastic N`, a box of N^3 nodes with 3 x 3 blocks, `7-point N`, a grid, and `FILE.npz`, as
`scipy.sparse.save_npz` writes it (`bench/sparse_table.py prepare` makes the piston's). Both calls
make the same number of iterations, one after the other in each round; values are ratios of their
medians, by the clock and by CPU time: on idle cores two threads need half the CPU time's ratio.
`floor` is what the iterations must read and write, at the rate at which as many threads read an
array that no cache holds, measured in the same run. `products_cpu_seconds` are CPU time of a
product, ours and, where it is installed, MKL's with its inspector, in turn, the least of `rounds`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.sparse import load_npz
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import cg as cg_of_scipy

import quadriga
from quadriga import sparse
from quadriga.bench import sparse_peers
from quadriga.bench.elasticity import box_stiffness

KINDS = {
    "elastic": lambda n: box_stiffness((n, n, n)),
    "7-point": lambda n: sparse.poisson((n, n, n), 7),
}
#: Of an iteration: p = M r + beta p takes four, q = A p two, and the step seven: it reads x, p, r,
#: q and M, and writes x and r.
VECTORS = 13


def read_rate(threads: int, megabytes: int = 256) -> float:
    """Bytes a second at which so many threads read, the best of five passes."""
    arrays = [np.ones(megabytes * 125_000 // threads) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        seconds = []
        for _ in range(5):
            begin = time.perf_counter()
            list(pool.map(lambda each: np.dot(each, each), arrays))
            seconds.append(time.perf_counter() - begin)
    return megabytes * 1e6 / min(seconds)


def spent(work: Callable[[], object]) -> tuple[float, float]:
    begin, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin, time.process_time() - used


def products_cpu_seconds(
    solver: sparse.Solver, a: object, b: np.ndarray, rounds: int, count: int = 20
) -> dict[str, float]:
    peers = sparse_peers.products(a, b, solver.engine)
    ways = {"quadriga": lambda count: solver.measure_product(count - 1)}  # and one before
    ways |= {name: peer for name, peer in peers.items() if name == "MKL"}
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, work in ways.items():
            begin = time.process_time()
            work(count)
            least[name] = min(least[name], (time.process_time() - begin) / count)
    return least


def measure(case: str, engine: quadriga.Engine, iterations: int, rounds: int) -> dict[str, object]:
    if case.endswith(".npz"):
        a = load_npz(case).tocsr()
    else:
        kind, size = case.split()
        a = KINDS[kind](int(size))
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    inverse = 1 / a.diagonal()
    jacobi = LinearOperator(a.shape, matvec=lambda r: inverse * r, dtype=b.dtype)
    solver = sparse.Solver(a, M="jacobi", engine=engine)
    limits = {"rtol": 0.0, "maxiter": iterations}
    ways = {
        "scipy": lambda: cg_of_scipy(a, b, M=jacobi, **limits),
        "call": lambda: sparse.cg(a, b, M="jacobi", engine=engine, **limits),
        "solve": lambda: solver.solve(b, **limits),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            found[name].append(spent(work))
    wall, used = (
        {name: statistics.median(each[i] for each in times) for name, times in found.items()}
        for i in (0, 1)
    )
    threads = len(solver.plan["devices"])
    rate = read_rate(threads)
    moved = sum(solver.plan["bytes"]) + VECTORS * b.nbytes
    return {
        "benchmark": "sparse cores", "case": case, "unit": "times as fast as SciPy's cg",
        "value": wall["scipy"] / wall["call"], "target": 1.5,
        "by_cpu_time": used["scipy"] / used["call"],
        "solve_alone": wall["scipy"] / wall["solve"],
        "seconds": wall["call"], "scipy_seconds": wall["scipy"], "iterations": iterations,
        "floor_seconds": iterations * moved / rate, "read_gb_a_second": rate / 1e9,
        "read_gb_a_second_of_one": read_rate(1) / 1e9,
        "setup_seconds": solver.plan["seconds"],
        "product_seconds": solver.measure_product(20), "format": solver.plan["format"],
        "products_cpu_seconds": products_cpu_seconds(solver, a, b, rounds),
        "threads": threads, "load": os.getloadavg()[0],
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="cpu:2")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("cases", nargs="*", default=["elastic 40", "7-point 80"], metavar="CASE")
    chosen = parser.parse_args()
    with quadriga.Engine(chosen.devices) as engine:
        for case in chosen.cases:
            row = measure(case, engine, chosen.iterations, chosen.rounds)
            print(json.dumps(row), flush=True)
