# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_keep_rows.py: rows of a log become rows of bench/results/, or none does.
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOLD = ["--machine", "1 x GPU, 8 cores", "--commit", "abc1234", "--date", "2026-11-21"]
LOG = """some words of a build
== build/gpu/bin/quadriga-bench-gpu gemm --gpus 2 --n 8192 --trace out/gemm.json --repeat 5
{"case": "gemm", "tflops": 67.7}
-- rc 0 3 s
== quadriga-bench-gpu chain
{"case": "chain", "tasks": 10000}
{"case": "chain", "tasks": 20000}
"""


def keep(folder, log, *options):
    (folder / "all.log").write_text(log)
    command = [sys.executable, ROOT / "tools/keep_rows", folder / "r.jsonl", folder / "all.log"]
    return subprocess.run([*command, *options], capture_output=True, text=True, cwd=ROOT)


def test_rows_get_what_tells_where_they_come_from(tmp_path):
    (tmp_path / "r.jsonl").write_text('{"case": "before"}\n')
    done = keep(tmp_path, LOG, *TOLD)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [row["case"] for row in rows] == ["before", "gemm", "chain", "chain"]
    assert list(rows[1]) == ["case", "tflops", "machine", "commit", "date", "command"]
    assert rows[1]["command"] == "quadriga-bench-gpu gemm --gpus 2 --n 8192 --repeat 5"
    assert rows[3]["command"] == "quadriga-bench-gpu chain"
    assert rows[1]["machine"] == "1 x GPU, 8 cores" and rows[1]["commit"] == "abc1234"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ('{"case": "gemm"}\n', "a row of no command"),
        ('== b x\n{"case": "gemm"}\n{"tflops": 1}\n', "line 3: no row of a benchmark"),
        ('== b x\n{"case": "gemm"}\n{"case": "ge', "Unterminated"),
    ],
)
def test_a_damaged_log_adds_nothing(tmp_path, log, words):
    done = keep(tmp_path, log, *TOLD)
    assert done.returncode == 1 and words in done.stderr
    assert not (tmp_path / "r.jsonl").exists()


def test_a_command_for_rows_alone(tmp_path):
    done = keep(tmp_path, '{"case": "gemm"}\n', *TOLD, "--command", "bin/quadriga-bench-gpu gemm")
    assert done.returncode == 0
    row = json.loads((tmp_path / "r.jsonl").read_text())
    assert row["command"] == "quadriga-bench-gpu gemm"


def test_rows_that_are_kept_have_all_of_it():
    for path in sorted((ROOT / "bench/results").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            assert row["machine"] and row["commit"] and row["case"], path.name
            assert "epyc" in path.name or (row["date"] in path.name and row["command"]), path.name
