# SPDX-License-Identifier: BSD-3-Clause
# bench/host_access.py: what the host's access costs an iterative program; its ceiling is no access.
"""100 steps of 64 tasks on 64 tiles, and one scalar a step that the host reads, or doesn't.

usage: python bench/host_access.py [DEVICES] [--virtual]; prints a line of JSON for each way, the
median of five runs, and the cost of registering again and of an access when nothing moves.
"""

import json
import statistics
import sys
import time

import numpy as np

import quadriga

STEPS, TILES, ORDER = 100, 64, 64
COST = quadriga.Cost("dgemm", ORDER, 4 * ORDER**3)
WAYS = (
    "none",
    "resident on_host",
    "resident result",
    "resident wait",
    "default result",
    "default wait",
)


# On a GPU as much work an element, and a sum by one warp.
RELAX = quadriga.CudaSource(
    "__global__ void relax(quadriga::Tile<double> x) {\n"
    "  const long long k = quadriga::thread_x();\n"
    "  if (k >= x.size()) return;\n"
    "  double value = x[k];\n"
    "  for (int i = 0; i < 4 * 64; ++i) value = value * 1e-3 + 1;\n"
    "  x[k] = value;\n"
    "}\n"
)
NORM = quadriga.CudaSource(
    "__global__ void norm(quadriga::Tile<const double> x, quadriga::Tile<double> total) {\n"
    "  const long long k = quadriga::thread_x();\n"
    "  if (k >= 32) return;\n"
    "  double sum = 0;\n"
    "  for (long long i = k; i < x.size(); i += 32) sum += x[i];\n"
    "  for (int from = 16; from > 0; from /= 2) sum += __shfl_down_sync(~0u, sum, from);\n"
    "  if (k == 0) total[0] = sum;\n"
    "}\n"
)


@quadriga.codelet(access=["update"], host_only=False, cost=COST, cuda=RELAX)
def relax(x):
    for _ in range(4):
        x[...] = x @ x * 1e-3 + 1


@quadriga.codelet(access=["read", "write"], host_only=False, cost=COST, cuda=NORM)
def norm(x, total):
    total[0] = x.sum()
    return float(total[0])


def run(way, options):
    tiles = [np.ones((ORDER, ORDER)) for _ in range(TILES)]
    total = np.zeros(1)
    with quadriga.Engine(**options) as engine:
        data = [engine.data(tile, resident=not way.startswith("default")) for tile in tiles]
        scalar = engine.data(total, resident=not way.startswith("default"))
        begin = engine.now()
        for _ in range(STEPS):
            for each in data:
                engine.submit(relax, each.update())
            last = engine.submit(norm, data[0].read(), scalar.write(), priority=1)
            if way == "resident on_host":
                with scalar.on_host("r") as found:
                    _ = float(found[0])
            elif way.endswith("result"):
                last.result()
            elif way != "none":
                engine.wait()
        engine.wait()
        return engine.now() - begin, sum(link.bytes for link in engine.counters().links)


def microseconds(call, count=20000):
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count * 1e6


def main():
    arguments = [each for each in sys.argv[1:] if each != "--virtual"]
    devices = arguments[0] if arguments else "emulated:2,memory=16MiB,h2d=2GB/s,d2h=2GB/s"
    options = {"devices": devices, "virtual_clock": "--virtual" in sys.argv}
    if options["virtual_clock"]:
        machine = json.loads(quadriga.Machine.parse(devices).to_json())
        times = {str(ORDER): 1e-4}
        machine["kernels"] = {"dgemm": {"emulated": times, "cpu": times}}
        options["devices"] = quadriga.Machine.from_json(json.dumps(machine))
    runs = {way: [] for way in WAYS}
    for _ in range(5):
        for way in WAYS:
            runs[way].append(run(way, options))
    for way in WAYS:
        seconds = statistics.median(each[0] for each in runs[way])
        print(json.dumps({"way": way, "ms": round(seconds * 1e3, 2), "bytes": runs[way][0][1]}))
    with quadriga.Engine(**options) as engine:
        x = np.zeros(8)
        data = engine.data(x)

        def touch():
            with data.on_host("rw"):
                pass

        again = microseconds(lambda: engine.data(x))
        access = microseconds(touch)
    print(json.dumps({"register_again_us": round(again, 2), "on_host_us": round(access, 2)}))


if __name__ == "__main__":
    main()
