# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_models.py: conjugate gradients in other programming models give the same x.
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODELS = Path(__file__).resolve().parents[2] / "bench" / "models"
MOST_LINES = 250
#: Waiting threads leave the cores to others.
PASSIVE = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2"}


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ isn't installed")
def test_programs_run_or_say_why_not(tmp_path):
    words = [sys.executable, MODELS / "run.py", "--n", "9", "--json", "--build", tmp_path]
    told = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, **PASSIVE}, timeout=900
    )
    assert told.returncode == 0, told.stderr
    rows = [json.loads(line) for line in told.stdout.splitlines()]
    ran = [row for row in rows if "left_out" not in row]
    # What g++ has needs no GPU.
    assert {"host OpenMP", "OpenMP target", "OpenACC", "quadriga"} <= {row["model"] for row in ran}
    for row in ran:
        assert row["residual"] <= 2e-8
        assert abs(row["iterations"] - ran[0]["iterations"]) <= 3
    ways = {(row["exchange"], row["overlap"]) for row in ran if row["model"] == "OpenMP target"}
    assert ways == {("host", True), ("host", False), ("device", True), ("device", False)}
    for row in rows:
        assert row.get("left_out") != ""


@pytest.mark.parametrize("path", sorted(MODELS.iterdir()), ids=lambda path: path.name)
def test_a_model_is_one_short_file(path):
    if path.suffix != ".py" and path.is_file():
        assert len(path.read_text().splitlines()) <= MOST_LINES
