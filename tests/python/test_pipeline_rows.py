# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_rows.py: arrays as sources, and how many of their rows make a chunk.
"""What is chosen follows from the machine: the virtual clock says how good it is."""

from __future__ import annotations

import numpy as np
import pytest

import quadriga

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]


def double(x, y):
    y[...] = 2 * x


def like_x(chunk):
    return chunk["x"].shape, chunk["x"].dtype


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("rows", [None, 1, 7, 1000])
def test_an_array_is_cut_into_rows(devices: str, rows: int | None) -> None:
    x = np.arange(300.0).reshape(100, 3)
    pipeline = quadriga.Pipeline(devices=devices).source({"x": x, "n": np.arange(100)}, rows)
    pipeline.kernel(double, reads=["x"], writes={"y": like_x})
    chunks = list(pipeline.results())
    np.testing.assert_array_equal(np.concatenate([chunk["y"] for chunk in chunks]), 2 * x)
    np.testing.assert_array_equal(np.concatenate([chunk["n"] for chunk in chunks]), np.arange(100))
    assert all(np.shares_memory(chunk["x"], x) for chunk in chunks)
    stats = pipeline.stats()
    assert len(chunks[0]["x"]) == min(100, stats.chunk_rows)
    assert rows is None or stats.chunk_rows == rows
    assert 1 <= stats.most_on_device <= 3
    assert f"chunks of {stats.chunk_rows} rows" in str(stats)


def run(machine: str, x: np.ndarray, rows: int | None, **options: object):
    """By the virtual clock, a kernel of no time: all is copies."""
    with quadriga.Engine(quadriga.Machine.parse(machine), virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine, **options).source({"x": x}, rows)
        cost = quadriga.Cost.of_seconds(0)
        pipeline.kernel(double, reads=["x"], writes={"y": like_x}, cost=cost)
        return pipeline.run()


MACHINES = [
    f"emulated:{devices},memory=64MiB,h2d={rate},d2h={rate},latency={latency}"
    for devices in (1, 2, 4)
    for rate in ("1GB/s", "50GB/s")
    for latency in ("2us", "50us")
]


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_chosen_is_near_the_best_of_all_sizes(machine: str) -> None:
    x = np.zeros((4096, 1024))  # 32 MiB
    chosen = run(machine, x, None)
    assert chosen.chunks == -(-4096 // chosen.chunk_rows)
    others = [run(machine, x, 4096 >> each).seconds for each in range(1, 11)]
    assert chosen.seconds <= 1.05 * min(others)


def test_faster_links_and_longer_latencies_make_larger_chunks() -> None:
    x = np.zeros((4096, 1024))

    def rows(rate: str, latency: str) -> int:
        machine = f"emulated:1,memory=64MiB,h2d={rate},d2h={rate},latency={latency}"
        return run(machine, x, None).chunk_rows

    assert rows("1GB/s", "10us") < rows("50GB/s", "10us") < rows("50GB/s", "100us")


def test_chunks_fit_memory_as_many_as_are_in_flight() -> None:
    x = np.zeros((1024, 128))  # a row and its result take 2 KiB
    slow = "emulated:1,memory=1MiB,h2d=50GB/s,d2h=50GB/s,latency=10ms"
    assert run(slow, x, None).chunk_rows <= 2**20 // 3 // 2048
    assert run(slow, x, None, memory="64KiB").chunk_rows <= 2**16 // 3 // 2048
    assert run(slow, x, None, host_memory="64KiB").chunk_rows <= 2**16 // 4 // 2048


def test_cores_get_several_chunks_each() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:2").source(np.zeros((6400, 2)))
    pipeline.map(lambda chunk: None).run()
    assert pipeline.stats().chunk_rows == -(-6400 // (32 * pipeline._options["threads"]))
    pipeline = quadriga.Pipeline(devices="cpu:2").source(np.zeros((6400, 2)))
    pipeline.kernel(lambda array: array.sum(axis=0), returns="sum").run()
    assert pipeline.stats().chunk_rows == 100


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("length", [0, 1, 2])
def test_short_arrays(devices: str, length: int) -> None:
    pipeline = quadriga.Pipeline(devices=devices).source(np.ones((length, 3)))
    pipeline.reduce("array").run()
    assert pipeline.stats().chunks <= length
    assert not length or pipeline.reduced["array"].tolist() == [length] * 3


@pytest.mark.parametrize(
    ("given", "rows", "message"),
    [
        (np.zeros(()), None, "need equal numbers of rows"),
        ({"x": np.zeros(3), "y": np.zeros(4)}, None, "shapes \\(3,\\), \\(4,\\)"),
        ({"x": [1, 2]}, None, "a dict as a source needs arrays"),
        ({}, None, "a dict as a source needs arrays"),
        (np.zeros(3), 0, "rows 0: expected"),
        (iter([]), 3, "rows= is for sources that are arrays, got list_iterator"),
    ],
)
def test_wrong_arguments_are_named(given, rows, message: str) -> None:
    with pytest.raises(quadriga.Error, match=message):
        quadriga.Pipeline(devices="cpu:1").source(given, rows)
