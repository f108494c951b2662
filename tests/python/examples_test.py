# SPDX-License-Identifier: BSD-3-Clause
# tests/python/examples_test.py: every Python example runs; every example is short.
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MOST_LINES = 60


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    result = subprocess.run(
        [sys.executable, path],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "path",
    sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.cpp")]),
    ids=lambda path: path.name,
)
def test_example_is_short(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES
