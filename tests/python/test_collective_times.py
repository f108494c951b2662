# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_collective_times.py: where the time of a collective went, as a rank sees it.
"""Times of the last collective: nobody notes them unless asked, and they are in order."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from quadriga import message

ROOT = Path(__file__).parents[2]


def launched(*words):
    """Lines of JSON of a program on two ranks."""
    command = [sys.executable, "-m", "quadriga", "launch", "-n", "2", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_nobody_notes_times_unless_asked():
    with message.world() as comm:
        comm.allreduce(np.ones(4))
        assert comm.times() is None
        comm.note_times()
        comm.allreduce(np.ones(4))
        times = comm.times()
        comm.note_times(False)
        assert comm.times() is None
    assert times.kind == "allreduce"
    assert 0 <= times.agreed <= times.packed <= times.moved <= times.ended


def check_steps(times, sent):
    assert times.plan.startswith("allreduce: chain")
    assert 0 < times.agreed <= times.packed <= times.moved <= times.ended
    kinds = {step.kind for step in times.steps}
    assert {"send", "receive"} <= kinds
    assert sum(step.bytes for step in times.steps if step.kind == "send") == sent
    for step in times.steps:
        assert times.packed <= step.ready <= step.begun <= step.queued <= step.ended <= times.moved
        assert step.begun <= step.matched <= step.ended
    # What waits for a step is ready no sooner than that has ended.
    assert max(step.ready for step in times.steps) >= min(step.ended for step in times.steps)


def rank_of_steps():
    count, segment = 40_000, 80_000
    with message.world(deadline=60) as comm:
        comm.force("chain", segment)
        comm.note_times()
        total = comm.allreduce(np.full(count, comm.rank + 1.0))
        times = comm.times()
        assert (total == 3).all()
        check_steps(times, 8 * count)
        combined = sum(step.bytes for step in times.steps if step.kind == "reduce")
        assert comm.allreduce(np.array([combined]))[0] == 8 * count
        comm.barrier()
        assert comm.times().kind == "barrier"
        assert comm.times().steps == []
        if comm.rank == 0:
            print(json.dumps({"ranks": comm.size}))


def test_steps_are_in_their_order():
    assert launched(__file__) == [{"ranks": 2}]


def test_the_benchmark_explains_each_rank():
    bench = ROOT / "bench" / "device_collectives.py"
    lines = launched(bench, "--sizes", "64KiB", "--repeat", 1, "--segments", "16KiB", "--explain")
    explained = [line for line in lines if line["case"] == "allreduce explained"]
    phases = [line for line in explained if "plan" in line]
    assert [line["rank"] for line in phases] == [0, 1]
    assert all(line["agreed_us"] <= line["packed_us"] <= line["moved_us"] for line in phases)
    reduces = [line for line in explained if line.get("kind") == "reduce" and "steps" in line]
    assert reduces
    assert all(line["moved_us"] > 0 for line in reduces)
    ways = {line["way"] for line in lines if "way" in line}
    assert ways == {"ours", "ours, segments of 16384"}


if __name__ == "__main__":
    rank_of_steps()
