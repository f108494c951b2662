# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_shared_links.py: a link that all devices share, from its measurement to a bound.
"""Four accelerators whose links carry 400 MB/s in all, and whose host carries 172."""

import json

import numpy as np
import pytest

import quadriga
from quadriga.bench import measure

LINK, SHARED, GPUS, CHUNKS, SIZE = 100e6, 172e6, 4, 48, 1_000_000


@pytest.fixture
def stated(tmp_path):
    links = {"host": {"bandwidth": SHARED, "latency": 0}}
    routes = []
    for i in range(GPUS):
        links |= {f"{way}{i}": {"bandwidth": LINK, "latency": 0} for way in ("in", "out")}
        routes.append({"from": "host", "to": f"acc{i}", "links": ["host", f"in{i}"]})
        routes.append({"from": f"acc{i}", "to": "host", "links": [f"out{i}", "host"]})
    device = {"kind": "emulated", "memory": 2**26, "copy_engines": 2}
    devices = [{"name": f"acc{i}"} | device for i in range(GPUS)]
    path = tmp_path / "stated.json"
    machine = {"name": "shared", "devices": devices, "links": links, "routes": routes}
    path.write_text(json.dumps(machine))
    return path


def found_rate(stated, path, repeat):
    kinds = ["h2d", "d2h", "both", "all-h2d", "all-d2h", "all-both"]
    settings = {"devices": f"machine={stated}", "sizes": "256KiB,4MiB", "output": path}
    list(measure.copies(kinds, repeat=repeat, **settings))
    machine = quadriga.Machine.from_file(path)
    shared = set.intersection(*(set(route.links) for route in machine.routes))
    assert shared == {"host-memory"}
    (rate,) = (each.bytes_per_second for each in machine.links if each.name in shared)
    return rate


def test_copies_of_all_devices_at_once_find_it(stated, tmp_path):
    # By the real clock: on a machine whose cores are busy a copy may take longer, never shorter.
    rates = []
    while len(rates) < 12 and not any(each == pytest.approx(SHARED, rel=0.05) for each in rates):
        rates.append(found_rate(stated, tmp_path / "found.json", 3 + 2 * len(rates)))
    assert max(rates) == pytest.approx(SHARED, rel=0.05)


def add_one(x):
    x += 1


@pytest.mark.parametrize("seconds", [0.001, 0.01, 0.05], ids=lambda each: f"kernels of {each} s")
def test_the_bound_counts_it_and_is_reached(stated, seconds):
    with quadriga.Engine(f"machine={stated}", virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine)
        pipeline.source({"x": np.zeros(SIZE, "u1")} for _ in range(CHUNKS))
        pipeline.kernel(add_one, updates=["x"], cost=quadriga.Cost.of_seconds(seconds))
        told = pipeline.estimate([{"x": np.zeros(SIZE, "u1")}] * CHUNKS)
        stats = pipeline.run()
    over_link = 2 * CHUNKS * SIZE / SHARED
    assert stats.bound_seconds == pytest.approx(told.seconds, rel=0.01)
    assert told.seconds >= 0.999 * over_link
    if seconds < 0.02:
        assert told.limit == "link host"
        assert told.seconds == pytest.approx(over_link, rel=0.05)
        assert told.one_device_more == pytest.approx(told.seconds, rel=0.01), "it shares that link"
    assert 0.999 <= stats.seconds / stats.bound_seconds <= 1.06


def test_a_device_more_has_a_link_that_both_directions_cross_once(tmp_path):
    device = {"name": "acc0", "kind": "emulated", "memory": 2**26, "copy_engines": 2}
    ends = [("host", "acc0"), ("acc0", "host")]
    routes = [{"from": one, "to": other, "links": ["both"]} for one, other in ends]
    links = {"both": {"bandwidth": LINK, "latency": 0}}
    path = tmp_path / "one.json"
    path.write_text(
        json.dumps({"name": "one", "devices": [device], "links": links, "routes": routes})
    )
    with quadriga.Engine(f"machine={path}", virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine)
        pipeline.kernel(add_one, updates=["x"], cost=quadriga.Cost.of_seconds(1e-4))
        told = pipeline.estimate([{"x": np.zeros(SIZE, "u1")}] * CHUNKS)
    assert told.seconds == pytest.approx(2 * CHUNKS * SIZE / LINK, rel=0.05)
    assert told.one_device_more == pytest.approx(told.seconds / 2, rel=0.05)
