# SPDX-License-Identifier: BSD-3-Clause
# tests/python/examples_test.py: every Python example runs; every example is short.
from pathlib import Path

import pytest
from scripts import run_script

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MOST_LINES = 59


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    run_script(path, tmp_path)


@pytest.mark.parametrize(
    "path",
    sorted(path for path in EXAMPLES.iterdir() if path.is_file()),
    ids=lambda path: path.name,
)
def test_example_is_short(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES
