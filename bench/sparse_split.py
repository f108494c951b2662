# SPDX-License-Identifier: BSD-3-Clause
# bench/sparse_split.py: products split by rows and by columns, where most rows are border and where
# few are.
"""Microseconds of a product, and of an iteration, by both splits.

One line of JSON a matrix, machine and split. `predicted` is the model's `reachable_seconds`;
`in_turn` and `overlapped` are measured, an iteration is the mean of 40 of Jacobi-preconditioned CG
by tasks. The bound of a product is the larger of computing and exchange. Devices are those of
descriptions, under the virtual clock, or with `--gpus` this computer's.
"""

import argparse
import json

import numpy as np
import scipy.sparse as sp

import quadriga
from quadriga import sparse

ITERATIONS = 40


def scattered(n, half, seed=1):
    """Symmetric, positive definite, with 2 * half columns anywhere in a row on average."""
    random = np.random.default_rng(seed)
    columns = random.integers(0, n, half * n)
    places = (np.repeat(np.arange(n), half), columns)
    upper = sp.coo_array((-np.ones(half * n), places), shape=(n, n)).tocsr()
    a = upper + upper.T
    return (a + sp.diags_array(1 - a.sum(axis=0))).tocsr()


CASES = {
    "scattered, 9 a row": lambda: scattered(200_000, 4),
    "scattered, 33 a row": lambda: scattered(100_000, 16),
    "scattered, 129 a row": lambda: scattered(40_000, 64),
    "27-point 48": lambda: sparse.poisson((48,) * 3, 27),
}


def row(name, a, split, engine):
    options = {"M": "jacobi", "method": "classic_cg", "recorded": False, "engine": engine}
    solver = sparse.Solver(a, split=split, overlap=True, parts=accelerators(engine), **options)
    (said,) = [
        way for way in solver.estimate() if (way["exchange"], way["route"]) == ("halo", "direct")
    ]
    reached = solver.measure_overlap()
    b = np.random.default_rng(2).standard_normal(a.shape[0])
    solver.solve(b, rtol=0, maxiter=ITERATIONS)
    begin = engine.now()
    solver.solve(b, rtol=0, maxiter=2 * ITERATIONS)
    middle = engine.now()
    solver.solve(b, rtol=0, maxiter=ITERATIONS)
    taken = (middle - begin) - (engine.now() - middle)
    plan = solver.plan
    seconds = {
        "predicted": said["reachable_seconds"],
        "bound": said["overlapped_seconds"],
        "in_turn": reached["in_turn_seconds"],
        "overlapped": reached["overlapped_seconds"],
        "iteration": taken / ITERATIONS,
    }
    found = {
        "case": name,
        "machine": engine.machine.name,
        "devices": len(plan["devices"]),
        "split": split,
        "border_share": round(sum(plan["border_rows"]) / a.shape[0], 3),
    }
    return found | {f"{key}_us": round(1e6 * value, 1) for key, value in seconds.items()}


def accelerators(engine):
    return sum(device.kind != "cpu" for device in engine.machine.devices)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", action="append", help="descriptions, perhaps with :COUNT")
    parser.add_argument("--gpus", type=int, help="measure so many GPUs instead")
    parser.add_argument("--case", choices=list(CASES), action="append", help="default: all")
    given = parser.parse_args()
    described = given.machine or ["machines/p100x2.json", "machines/h200x4.json"]
    places = [f"cuda:{given.gpus}"] if given.gpus else [f"machine={each}" for each in described]
    for case in given.case or CASES:
        a = CASES[case]()
        for place in places:
            for split in ("rows", "columns"):
                with quadriga.Engine(place, virtual_clock=not given.gpus) as engine:
                    print(json.dumps(row(case, a, split, engine)), flush=True)


if __name__ == "__main__":
    main()
