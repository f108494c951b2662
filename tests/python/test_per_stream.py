# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_per_stream.py: values of streams are made once, not shared, and closed.
"""What a library needs once for each stream."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import quadriga
from quadriga.per_stream import inside


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
def test_each_stream_has_a_value_that_nobody_else_uses(devices: str) -> None:
    made, closed, shared = [], [], []

    def make() -> threading.Lock:
        made.append(threading.Lock())
        return made[-1]

    with quadriga.PerStream(make, closed.append) as locks:

        def scale(x) -> None:
            lock = locks()
            if not lock.acquire(blocking=False):
                shared.append(lock)
            x *= 2
            lock.release()

        pipeline = quadriga.Pipeline(devices=devices).source(np.ones(10) for _ in range(50))
        pipeline.kernel(scale, updates=["array"])
        assert all((chunk["array"] == 2).all() for chunk in pipeline.results())
        assert 1 <= len(locks) == len(made) <= 8
    assert not shared
    assert sorted(map(id, closed)) == sorted(map(id, made))
    assert len(locks) == 0


def test_streams_of_devices_are_told_apart() -> None:
    values = quadriga.PerStream(object)
    seen = []
    for device, stream in [(0, 7), (0, 8), (1, 7), (0, 7)]:
        with inside(stream, device):
            seen.append(values())
    assert seen[0] is seen[3]
    assert len({id(each) for each in (*seen, values())}) == 4
