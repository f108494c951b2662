# SPDX-License-Identifier: BSD-3-Clause
# bench/python_chain.py: what a task from Python takes, submitted and done, by kind of codelet.
"""Chains of tiny tasks, each of which updates one array; prints a line of JSON for each kind: the
time of a task, and the processor time of all threads, which depends less on other programs.

usage: python bench/python_chain.py [DEVICES]

On cpu a NumPy body; on GPUs a CUDA source, and a function of CuPy's or PyTorch's arrays where these
can be imported, each beside the same launches of that library alone.
"""

import importlib.util
import json
import statistics
import sys
import time

import numpy as np

import quadriga

TASKS, RUNS = 5000, 5
SOURCE = quadriga.CudaSource(
    "__global__ void add(quadriga::Tile<double> x) {\n"
    "  const long long k = quadriga::thread_x();\n"
    "  if (k < x.size()) x[k] += 1;\n"
    "}\n"
)


def add(x):
    x += 1


def codelets(devices):
    """Name and codelet of each kind that these devices and this Python can run."""
    if not devices.startswith("cuda"):
        return {"numpy": quadriga.codelet(access=["update"])(add)}
    kinds = {"source": quadriga.codelet(access=["update"], cuda=SOURCE)(add)}
    for library in ("cupy", "torch"):
        if importlib.util.find_spec(library):
            kinds[library] = quadriga.codelet(access=["update"], arrays=library, cuda=add)(add)
    return kinds


def microseconds(work):
    """Of one task, time and processor time: medians of some runs after one that isn't counted."""
    taken = []
    for _ in range(RUNS + 1):
        begin = time.perf_counter(), time.process_time()
        work()
        taken.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return [statistics.median(each) / TASKS * 1e6 for each in zip(*taken[1:], strict=True)]


def chain(engine, codelet):
    x = np.zeros(8)
    data = engine.data(x)

    def work():
        for _ in range(TASKS):
            engine.submit(codelet, data.update())
        engine.wait()

    taken = microseconds(work)
    if x[0] != (RUNS + 1) * TASKS:
        sys.exit(f"python_chain: the chain should end at {(RUNS + 1) * TASKS}, not at {x[0]}")
    return taken


def alone(library):
    """The same additions without tasks, in the library's own stream."""
    if library == "numpy":
        x = np.zeros(8)
        return microseconds(lambda: [add(x) for _ in range(TASKS)])
    module = importlib.import_module(library)
    if library == "cupy":
        x, wait = module.zeros(8), module.cuda.Device().synchronize
    else:
        x, wait = module.zeros(8, device="cuda"), module.cuda.synchronize
    return microseconds(lambda: [[add(x) for _ in range(TASKS)], wait()])


def main():
    devices = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    with quadriga.Engine(devices=devices) as engine:
        for name, codelet in codelets(devices).items():
            row = {"case": f"python chain, {name}", "devices": devices, "tasks": TASKS}
            time_taken, processor = chain(engine, codelet)
            row["microseconds_a_task"] = round(time_taken, 2)
            row["processor_microseconds"] = round(processor, 2)
            if name != "source":
                row["alone_microseconds"] = round(alone(name)[0], 2)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
