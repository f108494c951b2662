# SPDX-License-Identifier: BSD-3-Clause
# bench/gpu_sparse.py: Jacobi-CG on GPUs, beside CuPy's and beside the bytes of an iteration.
"""Milliseconds of an iteration, as the difference of two runs; prints lines of JSON.

The matrices are grids, and linear elasticity of 1,387,386 rows.

`--by` says whether iterations are tasks or a recorded program.

The floor is what an iteration must read and write at the rate given (GB/s), the matrix in CSR; that
of blocks has the matrix as it is stored.
"""

import argparse
import json
import time

import numpy as np

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness

MATRICES = {
    "7-point 48": lambda: sparse.poisson((48,) * 3, 7),
    "27-point 128": lambda: sparse.poisson((128,) * 3, 27),
    "elastic 77": lambda: box_stiffness((78, 77, 77)),
}
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
    from cupyx.scipy.sparse.linalg import cg

    matrix, right = csr_matrix(a), cupy.asarray(b)
    inverse = 1 / matrix.diagonal()
    from cupyx.scipy.sparse.linalg import LinearOperator

    jacobi = LinearOperator(matrix.shape, matvec=lambda x: inverse * x, dtype=b.dtype)

    def solve(count):
        cg(matrix, right, rtol=0, maxiter=count, M=jacobi)
        cupy.cuda.Device().synchronize()

    return solve


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--rate", type=float, default=4300, help="of the memory, in GB/s")
    parser.add_argument("--format", default="auto")
    parser.add_argument("--precondition", choices=["jacobi", "block_jacobi"], default="jacobi")
    parser.add_argument("--case", choices=list(MATRICES), action="append", help="default: all")
    parser.add_argument("--by", choices=list(WAYS), help="default: what the solver chooses")
    given = parser.parse_args()
    for name in given.case or MATRICES:
        a = MATRICES[name]()
        b = np.random.default_rng(1).standard_normal(a.shape[0])
        row = {"case": f"cg {name}", "gpus": given.gpus, "by": given.by or "default"}
        with quadriga.Engine(f"cuda:{given.gpus}") as engine:
            recorded = WAYS[given.by] if given.by else None
            solver = sparse.Solver(
                a, M=given.precondition, format=given.format, recorded=recorded, engine=engine
            )

            def ours(count, solver=solver, b=b):
                return solver.solve(b, rtol=0, maxiter=count)

            row["format"] = solver.plan["format"]
            stored = sum(solver.plan["bytes"])
            row["milliseconds"] = round(1e3 * seconds_of(ours, 100, 1100), 4)
        floor = (a.nnz * 12 + a.shape[0] * 8 * 13) / given.rate / 1e6 / given.gpus
        row["floor_milliseconds"] = round(floor, 4)
        floor = (stored + a.shape[0] * 8 * 13) / given.rate / 1e6 / given.gpus
        row["stored_floor_milliseconds"] = round(floor, 4)
        if given.gpus == 1:
            row["cupy_milliseconds"] = round(1e3 * seconds_of(by_cupy(a, b), 50, 200), 4)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
