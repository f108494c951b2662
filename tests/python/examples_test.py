# SPDX-License-Identifier: BSD-3-Clause
# tests/python/examples_test.py: every Python example runs; every example is short.
from pathlib import Path

import pytest
from scripts import run_script

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MOST_LINES = 79
MOST_LINES_OF_A_PART = 149  # applications are folders of a few files, run by their main.py
LONG = "piston/main.py"  # test_piston runs it and reads what it prints
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/main.py")])
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.suffix not in ("", ".pyc"))


def name_of(path):
    return str(path.relative_to(EXAMPLES))


@pytest.mark.parametrize("path", [p for p in PROGRAMS if name_of(p) != LONG], ids=name_of)
def test_example_runs(path, tmp_path):
    run_script(path, tmp_path)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_example_is_short(path):
    most = MOST_LINES if path.parent == EXAMPLES else MOST_LINES_OF_A_PART
    assert len(path.read_text().splitlines()) <= most
