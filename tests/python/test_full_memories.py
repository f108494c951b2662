# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_full_memories.py: data that nearly fill the host's memory and the devices'.
"""Tiles change places through whatever is free; only what fits nowhere is refused."""

import numpy as np
import pytest

import quadriga

CLOCKS = [False, True]
fill = quadriga.codelet(access=["write"], host_only=False, cost=quadriga.Cost("nothing", 1, 1))(
    lambda y, by: y.fill(by)
)
add = quadriga.codelet(
    access=["update", "read"], host_only=False, cost=quadriga.Cost("nothing", 1, 1)
)(lambda y, x: np.add(y, x, out=y))


def _engine(devices, clock):
    return quadriga.Engine(f"{devices},memory=64KiB", host_memory="64KiB", virtual_clock=clock)


def _filled(engine, counts):
    """So many tiles in the memory of each device, the host's first: eight fit."""
    tiles = []
    for device, count in counts.items():
        for _ in range(count):
            tiles.append(engine.temporary(1000))
            engine.submit(fill, tiles[-1].write(), by=len(tiles), device=device)
        engine.wait()
    return tiles


def _contents(tiles):
    return [float(np.asarray(each)[0]) for each in tiles]


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("on_device", [1, 2, 7])
def test_a_full_host_reads_what_a_device_holds(on_device, clock):
    with _engine("emulated:1", clock) as engine:
        tiles = _filled(engine, {"host cpu": 8, 0: on_device})
        assert _contents(reversed(tiles)) == list(range(8 + on_device, 0, -1))
        assert _contents(tiles) == list(range(1, 9 + on_device))


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("on_device", [6, 7])
def test_a_device_works_on_what_a_full_host_holds(on_device, clock):
    with _engine("emulated:1", clock) as engine:
        tiles = _filled(engine, {"host cpu": 8, 0: on_device})
        for k in range(8):
            engine.submit(add, tiles[k].update(), tiles[(k + 1) % 8].read(), device=0)
        engine.wait()
        assert _contents(tiles[:8]) == [3, 5, 7, 9, 11, 13, 15, 11]


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_full_device_makes_room_by_way_of_a_full_host(clock):
    with _engine("emulated:2", clock) as engine:
        tiles = _filled(engine, {"host cpu": 8, 0: 8, 1: 6})
        for k in range(8, 16):
            engine.submit(add, tiles[k - 8].update(), tiles[k].read(), device=0)
        engine.wait()
        assert _contents(tiles[:8]) == [10 + 2 * k for k in range(8)]
        assert _contents(tiles[8:]) == list(range(9, 23))


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_tile_too_many_is_refused_and_the_others_stay(clock):
    with _engine("emulated:1", clock) as engine:
        tiles = _filled(engine, {"host cpu": 8, 0: 8})
        more = engine.temporary(1000)
        engine.submit(fill, more.write(), by=0)
        with pytest.raises(quadriga.TooLarge):
            engine.wait()
        del more
        del tiles[15:]
        assert _contents(tiles) == list(range(1, 16))
