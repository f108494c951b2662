# SPDX-License-Identifier: BSD-3-Clause
# tests/python/scripts.py: runs a script as its reader would, without a screen.
import os
import subprocess
import sys


def run_script(path, folder):
    """In a process of its own that starts in the folder."""
    result = subprocess.run(
        [sys.executable, path],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
