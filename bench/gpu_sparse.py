# SPDX-License-Identifier: BSD-3-Clause
# bench/gpu_sparse.py: Jacobi-CG on GPUs, beside CuPy's and beside the bytes of an iteration.
"""Milliseconds of an iteration, as the difference of two runs; prints lines of JSON.

Grids, and linear elasticity like SuiteSparse's Serena (`elastic 77`); on one GPU beside CuPy's
`cg`. `--rows SIZE` is a 27-point grid whose rows are computed as they are stored, so that CSR needs
no room on the host. `--by` says whether iterations are tasks or a recorded program, `--method` how
they are arranged; several methods are measured one after the other, a row each. The floor is
what an iteration must read and write at the rate given (GB/s), with the matrix as it is stored.

`--precision mixed` times whole solves to a relative residual of 1e-10 instead, beside double's.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.sparse import load_npz

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness

CASES = {
    "7-point 48": lambda: sparse.poisson((48,) * 3, 7),
    "27-point 128": lambda: sparse.poisson((128,) * 3, 27),
    "elastic 77": lambda: box_stiffness((78, 77, 77)),
}
METHODS = ["cg", "classic_cg", "single_reduction_cg", "pipelined_cg"]
WAYS = {"tasks": False, "replay": True}


def seconds_of(solve, few, many):
    """Of one iteration: the least of three differences."""
    solve(few)
    found = []
    for _ in range(3):
        times = []
        for count in (few, many):
            begin = time.perf_counter()
            solve(count)
            times.append(time.perf_counter() - begin)
        found.append((times[1] - times[0]) / (many - few))
    return min(found)


def by_cupy(a, b):
    import cupy
    from cupyx.scipy.sparse import csr_matrix
    from cupyx.scipy.sparse.linalg import LinearOperator, cg

    matrix, right = csr_matrix(a), cupy.asarray(b)
    inverse = 1 / matrix.diagonal()
    jacobi = LinearOperator(matrix.shape, matvec=lambda x: inverse * x, dtype=b.dtype)

    def solve(count):
        cg(matrix, right, rtol=0, maxiter=count, M=jacobi)
        cupy.cuda.Device().synchronize()

    return solve


def iterations(name, a, b, given):
    for method in given.method or ["cg"]:
        yield iteration(name, a, b, method, given)


def iteration(name, a, b, method, given):
    row = {"case": f"cg {name}", "gpus": given.gpus, "by": given.by or "default", "asked": method}
    with quadriga.Engine(f"cuda:{given.gpus}") as engine:
        recorded = WAYS[given.by] if given.by else None
        solver = sparse.Solver(
            a, method, given.precondition, format=given.format, recorded=recorded, engine=engine
        )
        row["milliseconds"] = round(
            1e3 * seconds_of(lambda count: solver.solve(b, rtol=0, maxiter=count), 100, 1100), 4
        )
        row["devices"] = len(solver.plan["devices"])
        row["recorded"] = solver.plan["recorded"]
        row["method"], row["why"] = solver.plan["method"], solver.plan["method_reason"]
        stored = sum(solver.plan["bytes"])
    floor = (stored + a.shape[0] * 8 * 13) / given.rate / 1e6 / given.gpus
    row["floor_milliseconds"] = round(floor, 4)
    if given.gpus == 1 and given.rows is None and method == (given.method or ["cg"])[-1]:
        row["cupy_milliseconds"] = round(1e3 * seconds_of(by_cupy(a, b), 50, 200), 4)
    return row


def solves(name, a, b, given):
    row = {"case": f"solve {name}", "gpus": given.gpus}
    with quadriga.Engine(f"cuda:{given.gpus}") as engine:
        for precision in (None, "mixed"):
            solver = sparse.Solver(
                a, M=given.precondition, format=given.format, precision=precision, engine=engine
            )
            seconds = []
            for _ in range(4):
                begin = time.perf_counter()
                result = solver.solve(b, rtol=1e-10, maxiter=20000)
                seconds.append(time.perf_counter() - begin)
            key = precision or "double"
            row[f"{key}_milliseconds"] = round(1e3 * min(seconds[1:]), 2)
            row[f"{key}_iterations"] = result.iterations
            row[f"{key}_reason"] = result.reason
    yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--rate", type=float, default=4300, help="of the memory, in GB/s")
    parser.add_argument("--format", default="auto")
    parser.add_argument("--precondition", default="jacobi")
    parser.add_argument("--by", choices=list(WAYS), help="default: what the solver chooses")
    parser.add_argument("--method", choices=METHODS, action="append", help="default: cg")
    parser.add_argument("--case", choices=list(CASES), action="append", help="default: all")
    parser.add_argument("--precision", choices=["mixed"], help="compare whole solves with double's")
    parser.add_argument("--matrix", metavar="FILE.npz", help="instead of the cases")
    parser.add_argument("--rows", type=int, metavar="SIZE", help="of a 27-point grid, instead")
    given = parser.parse_args()
    cases = {name: CASES[name] for name in given.case or CASES}
    if given.rows is not None:
        cases = {f"27-point {given.rows}": lambda: sparse.poisson_rows((given.rows,) * 3, 27)}
    if given.matrix is not None:
        cases = {Path(given.matrix).stem: lambda: load_npz(given.matrix).tocsr()}
    for name, make in cases.items():
        a = make()
        b = np.random.default_rng(1).standard_normal(a.shape[0])
        measure = solves if given.precision else iterations
        for row in measure(name, a, b, given):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
