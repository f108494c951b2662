# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_repeatable.py: the virtual clock repeats a program to the byte, whatever is
# dropped and whenever Python's garbage collector looks for it.
import gc
import random

import numpy as np
import pytest

import quadriga
from quadriga import linalg

cost = quadriga.Cost("dgemm", 64, 64**3)
add = quadriga.codelet(["update", "read"], cost=cost, host_only=False, name="add")(
    lambda y, z: y.__iadd__(z)
)


@pytest.fixture(autouse=True)
def _collector():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.enable()


def in_a_cycle(thing):
    """A holder that only the collector lets go."""
    holder = [thing]
    holder.append(holder)
    return holder


def engine(policy, memory):
    return quadriga.Engine(
        f"machine=machines/idgraf.json:3,memory={memory}",
        virtual_clock=True,
        trace=True,
        seed=5,
        policy=policy,
    )


def tasks_on_dropped_arrays(policy, held):
    with engine(policy, "200KiB") as on:
        choice = random.Random(3)
        data = [held(on.data(np.ones(2000))) for _ in range(30)]
        for step in range(200):
            i, j = choice.sample(range(30), 2)
            on.submit(add, data[i][0].update(), data[j][0].read(), priority=choice.randrange(3))
            for k in choice.sample(range(30), 4) if step % 9 == 0 else ():
                data[k] = held(on.data(np.ones(2000)))
        on.wait()
        return on.trace_json(), on.now()


def dropped_factors(policy, held):
    a = np.random.default_rng(1).standard_normal((200, 200))
    a = a @ a.T + 200 * np.eye(200)
    with engine(policy, "300KiB") as on:
        for columns in (5, 70, 1, 3, 2):
            factor = held(linalg.cho_factor(a, engine=on, tile=64))
            factor[0].solve(np.ones((200, columns)))
            factor[0].logdet()
            factor[0].unpack(True)
        on.wait()
        return on.trace_json(), on.now()


@pytest.mark.parametrize("policy", ["affinity", "steal"])
@pytest.mark.parametrize("program", [tasks_on_dropped_arrays, dropped_factors])
@pytest.mark.parametrize("held", [lambda thing: [thing], in_a_cycle], ids=["counted", "cyclic"])
def test_traces_are_the_same_to_the_byte(policy, program, held):
    seen = set()
    for threshold in (0, 0, 1, 7, 100, 700):
        gc.collect()
        gc.set_threshold(threshold)
        seen.add(program(policy, held))
    assert len({end for _, end in seen}) == 1
    assert len(seen) == 1


def factorizations(tile):
    with engine("affinity", "1MiB") as on:
        for _ in range(8):
            linalg.cho_factor(4 * np.eye(150) + 0.01, engine=on, tile=tile)
        on.wait()
        return on.trace_json(), on.now()


@pytest.mark.parametrize("tile", [None, 40])
def test_plans_dont_come_from_earlier_engines(tile):
    seen = {factorizations(tile) for _ in range(5)}
    assert len({end for _, end in seen}) == 1
    assert len(seen) == 1
