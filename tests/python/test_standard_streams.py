# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_standard_streams.py: extensions built by a g++ newer than the libstdc++ in use.
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("c++"), reason="there is no C++ compiler")

#: As headers since g++ 13 have it: nothing in the extension begins the standard streams.
EXTENSION = """
#include <ostream>
namespace std { extern ostream cout; }
extern "C" void say() { std::cout << "said " << 3.5 << std::endl; }
"""
PROGRAM = """
import ctypes, sys
other = ctypes.CDLL(sys.argv[1]) if sys.argv[2] == "first" else None
import quadriga
(other or ctypes.CDLL(sys.argv[1])).say()
with quadriga.Engine("emulated:1,memory=1MiB"):
    pass
"""


@pytest.mark.parametrize("order", ["first", "last"])
def test_their_streams_work_beside_quadriga(tmp_path, order):
    source, library = tmp_path / "other.cpp", tmp_path / "libother.so"
    source.write_text(EXTENSION)
    subprocess.run(["c++", "-shared", "-fPIC", "-o", library, source], check=True)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, library, order],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (ended.returncode, ended.stdout) == (0, "said 3.5\n"), ended.stderr
