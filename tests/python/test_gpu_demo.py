# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_gpu_demo.py: the demo on a GPU; skipped, with the reason, without one.
import json

import pytest

import quadriga
from quadriga import demo

ABSENCE = quadriga._core.Machine.cuda_absence()
pytestmark = pytest.mark.skipif(bool(ABSENCE), reason=ABSENCE)


def test_accepts_itself_on_a_gpu_and_moves_no_matrix(tmp_path, capsys):
    assert demo.run(demo.Options(points=6000, devices="cuda:1", output=tmp_path, json=True)) == 0
    told = json.loads(capsys.readouterr().out)
    last = told["runs"][-1]
    assert last["points"] == 6000
    assert last["counters"]["spill_bytes"] == 0
    # Points, heights and predictions only; the lower triangle has 144 MB.
    assert sum(link["bytes"] for link in last["counters"]["links"]) < 50e6


def test_what_fits_no_gpu_spills(tmp_path, capsys):
    options = demo.Options(
        points=6000, devices="cuda:1,memory=96MiB", output=tmp_path, json=True, tile=512
    )
    assert demo.run(options) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"][-1]["counters"]["spill_bytes"] > 0
