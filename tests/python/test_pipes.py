# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipes.py: pipes where files are expected are refused at once.
import os
import subprocess
import sys

import pytest

import quadriga

READS = {
    "factor": "linalg.Factor.load('pipe', devices='cpu:1')",
    "trace": "quadriga.report.write_report('pipe', 'out.html')",
    "machine": "quadriga.Machine.from_file('pipe')",
    "settings": "quadriga.config.window",
}


@pytest.mark.parametrize("what", READS)
def test_a_pipe_is_refused_where_a_file_is_read(what, tmp_path):
    name = "quadriga.json" if what == "settings" else "pipe"
    os.mkfifo(tmp_path / name)
    program = f"""
import quadriga, quadriga.report
from quadriga import linalg
try:
    {READS[what]}
except (quadriga.Error, ValueError) as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert name in result.stdout
    assert "not a regular file" in result.stdout


def test_a_log_of_decisions_is_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        quadriga.config(schedule_log=str(tmp_path / "pipe")),
        pytest.raises(quadriga.IoError, match="pipe: is not a regular file"),
    ):
        quadriga.Engine("emulated:1,memory=1MiB")


@pytest.mark.parametrize("command", ["report", "solve", "matmul", "cholesky"])
def test_the_command_line_refuses_a_pipe(command, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    arguments = {
        "report": ["pipe", "-o", "out.html"],
        "solve": ["pipe", "pipe", "-o", "x.npy"],
        "matmul": ["pipe", "pipe", "-o", "x.npy"],
        "cholesky": ["pipe", "-o", "x.npy"],
    }[command]
    result = subprocess.run(
        [sys.executable, "-m", "quadriga", command, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode in (1, 2)
    assert "pipe" in result.stderr
    assert "regular file" in result.stderr
