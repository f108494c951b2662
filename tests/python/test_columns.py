# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_columns.py: tiles that come with one copy hold what they should.
"""On an emulated device whose link loses half of its rate by runs as short as a tile's."""

import json

import numpy as np
import pytest

import quadriga
from quadriga import linalg

TILE = 32


def slow_by_short_runs():
    machine = json.loads(quadriga.Machine.parse("emulated:1,memory=64MiB,h2d=50MB/s").to_json())
    for link in machine["links"].values():
        link["runs"] = {str(TILE * 8): 0.5, str(TILE * 8 * 4): 1}
    times = {"emulated": {str(TILE): 1e-5}, "cpu": {str(TILE): 1e-5}}
    machine["kernels"] = dict.fromkeys(("dgemm", "dsyrk", "dtrsm", "dpotrf"), times)
    return quadriga.Machine.from_json(json.dumps(machine))


@pytest.mark.parametrize("virtual_clock", [False, True])
@pytest.mark.parametrize("order", [255, 256, 301])
def test_a_factorization_fetches_columns(order, virtual_clock, tmp_path, monkeypatch):
    log = tmp_path / "schedule.log"
    monkeypatch.setenv("QUADRIGA_SCHEDULE_LOG", str(log))
    random = np.random.default_rng(order)
    a = np.asfortranarray(random.standard_normal((order, order)))
    a += a.T
    a += 4 * order * np.eye(order)
    with quadriga.Engine(slow_by_short_runs(), virtual_clock=virtual_clock) as engine:
        c = linalg.cholesky(a, lower=True, tile=TILE, engine=engine)
    np.testing.assert_allclose(np.tril(c), np.linalg.cholesky(a), rtol=1e-12, atol=1e-12)
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith('[">"')]
    copies = [line[4:] for line in lines if line[4] == "copy"]
    # Behind kind, spaces, width, height and both addresses stand those of the pieces.
    assert any(len(copy) > 8 for copy in copies), "no copy brought several tiles"
