# SPDX-License-Identifier: BSD-3-Clause
# bench/sparse_overlap.py: products of sparse matrices on several devices: predicted beside reached.
"""Microseconds of a product for each way to exchange, by the model and by measurement.

One line of JSON a way: what the slowest part takes for exchange and rows one after the other
(`in_turn`) and at once (`overlapped`), and the share that overlap saves (`gain`).
With `--machine FILE` the devices are those of a description, under the virtual clock; else GPUs.
"""

import argparse
import itertools
import json

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness

CASES = {
    "7-point 64": lambda: sparse.poisson((64,) * 3, 7),
    "27-point 48": lambda: sparse.poisson((48,) * 3, 27),
    "elastic 24": lambda: box_stiffness((25, 24, 24)),
    "elastic 77": lambda: box_stiffness((78, 77, 77)),
}
SMALL = list(CASES)[:3]


def rows(name, a, engine):
    for exchange, route in itertools.product(("halo", "whole"), ("direct", "host")):
        solver = sparse.Solver(
            a, format="csr", exchange=exchange, route=route, recorded=False, engine=engine
        )
        way = (exchange, route)
        (said,) = [e for e in solver.estimate() if (e["exchange"], e["route"]) == way]
        reached = solver.measure_overlap()
        row = {"case": name, "devices": len(said["parts"]), "exchange": exchange, "route": route}
        for key in ("in_turn", "overlapped"):
            for told, where in (("predicted", said), ("reached", reached)):
                row[f"{key}_{told}"] = round(1e6 * where[f"{key}_seconds"], 2)
        row["gain_predicted"] = round(said["largest_gain"], 3)
        row["gain_reached"] = round(reached["gain"], 3)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", help="a machine's description; default: this one's GPUs")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument(
        "--case", choices=list(CASES), action="append", help="default: the small ones"
    )
    given = parser.parse_args()
    name = f"machine={given.machine}" if given.machine else "cuda"
    with quadriga.Engine(f"{name}:{given.devices}", virtual_clock=bool(given.machine)) as engine:
        for case in given.case or SMALL:
            for row in rows(case, CASES[case](), engine):
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
