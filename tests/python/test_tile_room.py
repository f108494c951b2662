# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_tile_room.py: temporaries that a program drops, more than fit into memory.
import threading

import numpy as np
import pytest

import quadriga

fill = quadriga.codelet(access=["write"], host_only=False)(lambda y, by=1: y.fill(by))
first = quadriga.codelet(access=["read"], host_only=False)(lambda y: float(y[0]))
DEVICES = [
    "cpu:1",
    "cpu:2",
    "emulated:1,memory=64KiB",
    "emulated:2,memory=64KiB",
    "emulated:1,memory=64KiB,streams=3",
]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("host_memory", ["16KiB", "64KiB"])
def test_dropped_tiles_make_room(devices, host_memory):
    for _ in range(3):
        with quadriga.Engine(devices, host_memory=host_memory) as engine:
            seen = []
            for k in range(200):
                tile = engine.temporary(1000)
                engine.submit(fill, tile.write(), by=k)
                if k % 3 == 0:
                    seen.append((k, engine.submit(first, tile.read())))
            engine.wait()
            assert [future.result() for _, future in seen] == [k for k, _ in seen]


@pytest.mark.parametrize("devices", DEVICES)
def test_tiles_that_are_held_have_no_room_and_stay_as_they_are(devices):
    with quadriga.Engine(devices, host_memory="16KiB") as engine:
        tiles = []

        def make():
            for k in range(40):
                tiles.append(engine.temporary(1000))
                engine.submit(fill, tiles[-1].write(), by=k)
            engine.wait()

        with pytest.raises(quadriga.TooLarge):
            make()
        del tiles[2:]
        assert float(np.asarray(tiles[0])[0]) == 0


@pytest.mark.parametrize("devices", DEVICES[2:])
def test_making_tiles_that_are_held_waits_for_no_task(devices):
    opened = threading.Event()
    closed = quadriga.codelet(access=["write"], host_only=False)(lambda y: y.fill(opened.wait(120)))
    # All of them fit on the host and one device together.
    with quadriga.Engine(devices, host_memory="64KiB") as engine:
        tiles = [engine.temporary(1000) for _ in range(2)]
        futures = [engine.submit(closed, each.write()) for each in tiles]
        for _ in range(8):
            tiles.append(engine.temporary(1000))
            futures.append(engine.submit(fill, tiles[-1].write()))
        assert not futures[0].done()
        opened.set()
        engine.wait()
        assert [float(np.asarray(each)[0]) for each in tiles] == [1] * 10


def test_tasks_that_others_submit_meanwhile_do_not_take_the_room(monkeypatch):
    begun, opened = threading.Event(), threading.Event()
    late = quadriga.codelet(access=["write"])(lambda y: y.fill(begun.wait(600)))
    wait = quadriga.codelet(access=[])(lambda: opened.wait(600) and None)
    with quadriga.Engine("cpu:2", host_memory="16KiB") as engine:
        half = engine._tasks.wait_for_half

        def others():
            for _ in range(10):
                engine.submit(wait)

        def wait_while_others_submit():
            begun.set()
            half()
            thread = threading.Thread(target=others)
            thread.start()
            thread.join()

        for _ in range(2):
            tile = engine.temporary(1000)
            engine.submit(late, tile.write())
        del tile
        monkeypatch.setattr(engine._tile_room, "_often", 1 << 40)  # only want of room makes it wait
        monkeypatch.setattr(engine._tasks, "wait_for_half", wait_while_others_submit)
        try:
            made = engine.temporary(1000)
        finally:
            begun.set()
            opened.set()
        engine.submit(fill, made.write(), by=7)
        assert float(np.asarray(made)[0]) == 7


@pytest.mark.parametrize("devices", DEVICES[:2])  # where making a tile takes its memory
def test_threads_make_and_drop_tiles(devices):
    failures = []
    with quadriga.Engine(devices, host_memory="128KiB") as engine:

        def make():
            try:
                for k in range(60):  # it holds two tiles at most
                    tile = engine.temporary(1000)
                    engine.submit(fill, tile.write(), by=k)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        engine.wait()
    assert failures == []
