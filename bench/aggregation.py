# SPDX-License-Identifier: BSD-3-Clause
# bench/aggregation.py: iterations and seconds with levels by smoothed aggregation, beside Jacobi's.
"""Poisson's equation on cubes to a relative residual of 1e-8; prints a line of JSON for each.

With pyamg installed, also what its conjugate gradients take with its own hierarchy.
"""

import argparse
import importlib.util
import json
import time

import numpy as np

import quadriga
from quadriga import sparse


def ours(a, b, kind, engine):
    begin = time.perf_counter()
    solver = sparse.Solver(a, M=kind, engine=engine)
    made = time.perf_counter()
    result = solver.solve(b, rtol=1e-8, maxiter=20000)
    return {
        "iterations": result.iterations,
        "setup_seconds": round(made - begin, 3),
        "solve_seconds": round(time.perf_counter() - made, 3),
    }


def pyamgs(a, b):
    import pyamg

    begin = time.perf_counter()
    hierarchy = pyamg.smoothed_aggregation_solver(a.tocsr())
    made = time.perf_counter()
    residuals = []
    hierarchy.solve(b, tol=1e-8, accel="cg", residuals=residuals)
    return {
        "iterations": len(residuals) - 1,
        "setup_seconds": round(made - begin, 3),
        "solve_seconds": round(time.perf_counter() - made, 3),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sides", nargs="*", type=int, default=[32, 64], help="of the cubes")
    parser.add_argument("--devices", default="cpu")
    given = parser.parse_args()
    with quadriga.Engine(given.devices) as engine:
        for side in given.sides:
            a = sparse.poisson((side,) * 3, 7)
            b = np.random.default_rng(1).standard_normal(a.shape[0])
            row = {"case": "aggregation", "side": side, "devices": given.devices}
            for kind in ("aggregation", "jacobi"):
                row[kind] = ours(a, b, kind, engine)
            if importlib.util.find_spec("pyamg"):
                row["pyamg"] = pyamgs(a, b)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
