# SPDX-License-Identifier: BSD-3-Clause
# bench/sparse_first_solve.py: what the first solves of a solver take beside later ones.
"""Set-up, the first three solves and the least of later ones, in milliseconds; lines of JSON.

Grids of drawn sides with 7 or 27 points an element row, the same for all runs of a seed. On GPUs
iterations are recorded when the solver is made: `--engine cuda:1`, `--engine cuda:2`. Of each
system several solvers are made, and each figure is the median of theirs.
"""

import argparse
import json
import statistics
import time

import numpy as np

import quadriga
from quadriga import sparse


def milliseconds(call):
    begin = time.perf_counter()
    found = call()
    return found, 1e3 * (time.perf_counter() - begin)


def one_solver(a, b, engine, given):
    recorded = True if given.recorded else None
    solver, setup = milliseconds(
        lambda: sparse.Solver(a, given.method, "jacobi", recorded=recorded, engine=engine)
    )
    solves = [
        milliseconds(lambda: solver.solve(b, rtol=0, maxiter=given.iterations))[1]
        for _ in range(3 + given.later)
    ]
    plan = solver.plan
    return {
        "setup": setup,
        "recording": 1e3 * plan.get("recording_seconds", 0),
        "first": solves[0],
        "second": solves[1],
        "third": solves[2],
        "later": min(solves[3:]),
    }, plan["recorded"]


def system(random, given, engine):
    points = int(random.choice([7, 27]))
    sides = tuple(int(side) for side in random.integers(given.least, given.most + 1, 3))
    a = sparse.poisson(sides, points)
    b = random.standard_normal(a.shape[0])
    found = [one_solver(a, b, engine, given) for _ in range(given.solvers)]
    row = {"case": f"{points}-point {'x'.join(map(str, sides))}", "engine": given.engine}
    row["recorded"] = found[0][1]
    for name in found[0][0]:
        row[name] = round(statistics.median(each[name] for each, _ in found), 3)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="cuda:1")
    parser.add_argument("--method", default="cg")
    parser.add_argument("--recorded", action="store_true", help="also on emulated devices")
    parser.add_argument("--iterations", type=int, default=127, help="of a solve")
    parser.add_argument("--systems", type=int, default=4)
    parser.add_argument("--solvers", type=int, default=5, help="of each system")
    parser.add_argument("--later", type=int, default=5, help="solves after the third")
    parser.add_argument("--least", type=int, default=20, help="side of a grid")
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--seed", type=int, default=12)
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    with quadriga.Engine(given.engine) as engine:
        for _ in range(given.systems):
            print(json.dumps(system(random, given, engine)), flush=True)


if __name__ == "__main__":
    main()
