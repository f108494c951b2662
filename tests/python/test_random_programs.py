# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_random_programs.py: random graphs on devices of three tiles, checked to the bit.
"""Programs of at least 50 tasks with all access modes give what running them in order gives."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import quadriga

SIZE = 16
TILE_BYTES = SIZE * SIZE * 8
MACHINE = """{{
  "name": "three tiles each",
  "devices": [{devices}],
  "links": {{"up": {{"bandwidth": 1e9, "latency": 1e-6}}, "down": {{"bandwidth": 5e8}},
             "ring": {{"bandwidth": 2e9}}}},
  "routes": [{routes}],
  "kernels": {{"dgemm": {{"gpu": {{"8": 1e-6, "16": 3e-6}}, "cpu": {{"8": 1e-5, "16": 2e-5}}}}}}
}}"""
COST = quadriga.Cost("dgemm", SIZE, SIZE**3)


def machine(count, peers):
    names = [f"g{i}" for i in range(count)]
    devices = [f'{{"name": "{n}", "kind": "gpu", "memory": {3 * TILE_BYTES}}}' for n in names]
    devices.append('{"name": "cpu", "kind": "cpu", "cores": 2}')
    routes = []
    for name in names:
        routes.append(f'{{"from": "host", "to": "{name}", "links": ["up"]}}')
        routes.append(f'{{"from": "{name}", "to": "host", "links": ["down"]}}')
        routes += [
            f'{{"from": "{name}", "to": "{other}", "links": ["ring"]}}'
            for other in names
            if peers and other != name
        ]
    return quadriga.Machine.from_json(
        MACHINE.format(devices=", ".join(devices), routes=", ".join(routes))
    )


def mix(x, y, z):
    """Depends on the order of tasks: floating point neither commutes nor associates over them."""
    z *= 0.5
    z += x @ y.T / SIZE
    z[0] = np.sqrt(np.abs(z[0]))


def overwrite(x, y):
    y[...] = 1.5 * x + 0.25


def gather(x, total):
    total += x  # on integers, whose sum has no order


def scramble(x):
    x[...] = np.roll(x, 1) * 1.0625 - 0.5


BODIES = {
    "mix": (mix, ("read", "read", "update")),
    "overwrite": (overwrite, ("read", "write")),
    "commute": (gather, ("read", "commute")),
    "reduce": (gather, ("read", "reduce")),
    "scramble": (scramble, ("update",)),
}
CODELETS = {
    (kind, host_only): quadriga.codelet(access=access, name=kind, host_only=host_only, cost=COST)(
        body
    )
    for kind, (body, access) in BODIES.items()
    for host_only in (True, False)
}
TILES, SUMS = 8, 3


def random_program(seed, length):
    """Steps: kind, operands, the sum to add to, whether on the host only, priority."""
    generator = random.Random(seed)
    program = []
    for _ in range(length):
        kind = generator.choice(sorted(BODIES))
        operands = generator.sample(range(TILES), len(BODIES[kind][1]))
        host_only = generator.random() < 0.3
        target, priority = generator.randrange(SUMS), generator.randint(-2, 2)
        program.append((kind, operands, target, host_only, priority))
    return program


def start(seed):
    generator = np.random.default_rng(seed)
    tiles = [generator.standard_normal((SIZE, SIZE)) for _ in range(TILES)]
    whole = [generator.integers(-9, 9, (SIZE, SIZE)).astype(float) for _ in range(TILES)]
    return tiles, whole, [np.zeros((SIZE, SIZE)) for _ in range(SUMS)]


def operands_of(step, tiles, whole, sums):
    kind, chosen, target, _, _ = step
    if kind in ("commute", "reduce"):
        return [whole[chosen[0]], sums[target]]
    return [tiles[each] for each in chosen]


def one_after_another(program, seed):
    tiles, whole, sums = start(seed)
    for step in program:
        BODIES[step[0]][0](*operands_of(step, tiles, whole, sums))
    return [*tiles, *sums]


def on_an_engine(program, seed, engine):
    tiles, whole, sums = start(seed)
    arrays = [*tiles, *whole, *sums]
    data = {id(array): engine.data(array) for array in arrays}
    futures = []
    for step in program:
        kind, _, _, host_only, priority = step
        codelet = CODELETS[kind, host_only]
        operands = [
            getattr(data[id(array)], mode)()
            for array, mode in zip(
                operands_of(step, tiles, whole, sums), codelet.access, strict=True
            )
        ]
        futures.append(engine.submit(codelet, *operands, priority=priority))
    engine.wait()
    assert all(future.done() for future in futures)
    return [*tiles, *sums]


def check(length, seed, **options):
    program = random_program(seed, length)
    expected = one_after_another(program, seed)
    with quadriga.Engine(seed=seed, **options) as engine:
        found = on_an_engine(program, seed, engine)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


lengths, seeds = st.integers(50, 150), st.integers(0, 2**32 - 1)
policies = st.sampled_from(["affinity", "steal"])
many = settings(max_examples=150, deadline=None)


@many
@given(lengths, seeds, st.integers(3, 5), st.booleans(), policies)
def test_on_the_virtual_clock(length, seed, count, peers, policy):
    check(length, seed, devices=machine(count, peers), policy=policy, virtual_clock=True,
          protect=True)  # fmt: skip


@many
@given(lengths, seeds, st.integers(3, 5), st.booleans(), policies)
def test_on_the_real_clock(length, seed, count, peers, policy):
    check(length, seed, devices=machine(count, peers), policy=policy)


@many
@given(lengths, seeds, policies)
def test_on_the_host(length, seed, policy):
    check(length, seed, devices="cpu:2", policy=policy)


def test_traces_of_the_virtual_clock_repeat_to_the_byte():
    texts = []
    for _ in range(2):
        with quadriga.Engine(machine(3, True), virtual_clock=True, trace=True) as engine:
            on_an_engine(random_program(5, 80), 1, engine)
            texts.append(engine.trace_json())
            assert all(each.evictions for each in engine.counters().devices[:3])
    assert texts[0] == texts[1]
    assert '"copy"' in texts[0]
