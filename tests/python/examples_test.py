# SPDX-License-Identifier: BSD-3-Clause
# tests/python/examples_test.py: every Python example runs; every example is short and says how it
# is built.
import re
from pathlib import Path

import pytest
from scripts import run_script

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MOST_LINES = 79
MOST_LINES_BY_SUFFIX = {".c": 99, ".f90": 149}  # which declare what others infer
MOST_LINES_OF_A_PART = 149  # applications are folders of a few files, run by their main.py
LONG = "piston/main.py"  # test_piston runs it and reads what it prints
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/main.py")])
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.suffix not in ("", ".pyc"))


COMPILED = [p for p in FILES if p.parent == EXAMPLES and p.suffix in (".c", ".cpp", ".cu", ".f90")]


def name_of(path):
    return str(path.relative_to(EXAMPLES))


@pytest.mark.parametrize("path", [p for p in PROGRAMS if name_of(p) != LONG], ids=name_of)
def test_example_runs(path, tmp_path):
    run_script(path, tmp_path)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_example_is_short(path):
    most = MOST_LINES_BY_SUFFIX.get(path.suffix, MOST_LINES)
    if path.parent != EXAMPLES:
        most = MOST_LINES_OF_A_PART
    assert len(path.read_text().splitlines()) <= most


@pytest.mark.parametrize("path", COMPILED, ids=name_of)
def test_compiled_example_says_how_it_is_built(path):
    assert re.search(rf"^[/! *]*Build: .*{re.escape(path.name)}", path.read_text(), re.MULTILINE)
