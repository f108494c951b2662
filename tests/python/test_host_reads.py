# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_host_reads.py: reading a scalar in each step doesn't hold up an iteration.
import json

import numpy as np

import quadriga

STEPS, TILES, ORDER = 20, 64, 64
COST = quadriga.Cost("dgemm", ORDER, 4 * ORDER**3)


@quadriga.codelet(access=["update"], host_only=False, cost=COST)
def relax(x):
    x += 1


@quadriga.codelet(access=["read", "write"], host_only=False, cost=COST)
def first(x, found):
    found[0] = x[0, 0]


def seconds(reads):
    """Of the steps, under the virtual clock; on_host() in each of them sees what it should."""
    machine = json.loads(quadriga.Machine.parse("emulated:2,memory=16MiB").to_json())
    machine["kernels"] = {"dgemm": {"emulated": {str(ORDER): 1e-4}, "cpu": {str(ORDER): 1e-4}}}
    devices = quadriga.Machine.from_json(json.dumps(machine))
    with quadriga.Engine(devices, virtual_clock=True) as engine:
        tiles = [engine.data(np.zeros((ORDER, ORDER)), resident=True) for _ in range(TILES)]
        scalar = engine.data(np.zeros(1), resident=True)
        begin = engine.now()
        for step in range(STEPS):
            for tile in tiles:
                engine.submit(relax, tile.update())
            engine.submit(first, tiles[0].read(), scalar.write(), priority=1)
            if reads:
                with scalar.on_host("r") as found:
                    assert found[0] == step + 1
        engine.wait()
        return engine.now() - begin


def test_a_scalar_read_in_each_step_costs_an_iteration_less_than_waiting_would():
    # 1.03 times with a wait() in each step, 1.00 with on_host().
    assert seconds(reads=True) <= 1.01 * seconds(reads=False)
