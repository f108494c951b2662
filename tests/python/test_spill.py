# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_spill.py: tiles without a home go to a file if one is given, on all devices.
import os
from pathlib import Path

import numpy as np
import pytest

import quadriga
from quadriga import linalg

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]


@pytest.fixture(params=DEVICES)
def devices(request):
    return request.param


def matrix():
    return linalg.from_function(800, lambda i, j: (i == j) * 4.0, hermitian=True)


def test_a_file_holds_what_host_memory_may_not(devices, tmp_path):
    with (
        quadriga.Engine(devices, host_memory="256KiB") as engine,
        pytest.raises(quadriga.TooLarge, match=r"256 KiB.*host_memory"),
    ):
        linalg.cho_factor(matrix(), engine=engine, tile=100)
    with quadriga.Engine(devices, host_memory="256KiB", spill=tmp_path / "spilled") as engine:
        factor = linalg.cho_factor(matrix(), engine=engine, tile=100)
        assert factor.logdet() == pytest.approx(800 * np.log(4))
        assert engine.counters().spill_bytes > 256 * 1024
        assert str(tmp_path / "spilled") in Path("/proc/self/maps").read_text()
        del factor
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_made(devices, tmp_path):
    with pytest.raises(quadriga.IoError, match="missing/spilled"):
        quadriga.Engine(devices, spill=tmp_path / "missing" / "spilled")


def test_more_than_the_disk_is_refused_with_the_figure(tmp_path):
    with (
        quadriga.Engine("cpu:2", spill=tmp_path / "spilled") as engine,
        pytest.raises(quadriga.TooLarge, match=r"[KMGT]iB.*spill"),
    ):
        linalg.estimate("cholesky", 10_000_000, from_source=True, tile=250_000, engine=engine)


def test_dropped_tiles_make_room():
    fill = quadriga.codelet(access=["write"], name="fill")(lambda x, value: x.fill(value))
    with quadriga.Engine("cpu:2", host_memory="256KiB") as engine:
        for value in range(5):
            tile = engine.temporary(25_000)  # two are too many
            engine.submit(fill, tile.write(), value=value)
            assert np.asarray(tile)[0] == value
            del tile
