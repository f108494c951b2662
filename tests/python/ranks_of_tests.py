# SPDX-License-Identifier: BSD-3-Clause
# tests/python/ranks_of_tests.py: programs as ranks of one world, by `quadriga launch`.
import subprocess
import sys
import textwrap

HEAD = """
import os, signal, sys, threading, time
import numpy as np
import quadriga
from quadriga import message
from quadriga.message import Layout
comm = message.world(deadline=30)

def print(*words, flush=True):  # All ranks share one pipe: a line is written at once.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""


def launched(folder, ranks, body, timeout=240, keep_going=False):
    """Runs a body on each rank; what it printed, its messages and its status."""
    program = folder / "program.py"
    program.write_text(HEAD + textwrap.dedent(body))
    command = [sys.executable, "-m", "quadriga", "launch", "-n", str(ranks)]
    command += ["--keep-going", str(program)] if keep_going else [str(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=folder)


def run_ranks(folder, ranks, body):
    """Runs a body on each rank, none of which may fail."""
    ended = launched(folder, ranks, body)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
