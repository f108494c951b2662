# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_device_benches.py: benchmarks of ranks with a device each, small, on the host.
"""They check what arrives; here that they run, and say what they are to say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def rows_of(name, ranks, *words):
    command = [sys.executable, "-m", "quadriga", "launch", "-n", str(ranks)]
    command += [str(ROOT / "bench" / name), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_borders_come_from_all_sides(ranks):
    exchange, step = rows_of("device_halo.py", ranks, "--n", 16, "--repeat", 2)
    assert exchange["bytes"] == step["bytes"] == 4 * 2 * 16 * 16 * 8
    assert exchange["us"] > 0
    assert step["of_step_without"] > 0


@pytest.mark.parametrize("panel", [16, 64])
def test_products_of_one_two_and_four_ranks(panel):
    rows = rows_of("device_gemm.py", 4, "--n", 128, "--panel", panel, "--repeat", 1)
    assert [row["ranks"] for row in rows] == [1, 2, 4]
    assert rows[0]["times_one"] == 1
    assert [row["goal"] for row in rows] == [None, 1.95, 3.85]
