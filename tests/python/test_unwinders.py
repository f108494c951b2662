# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_unwinders.py: libraries of other compilers that were loaded first.
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")

#: As LLVM's libunwind does: functions named as libgcc's, for contexts of another layout.
OTHER = """
#include <stdlib.h>
long _Unwind_GetCFA(void* context) { abort(); }
"""
PROGRAM = """
import quadriga
try:
    quadriga.Engine("nonsense")
except quadriga.InvalidArgument:
    print("caught")
"""


def run(**environment):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=dict(os.environ, **environment),
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize("bound", ["at once", "at the first call"])
def test_an_unwinder_that_calls_another_librarys_functions_is_refused(tmp_path, bound):
    source, library = tmp_path / "other.c", tmp_path / "libother.so"
    source.write_text(OTHER)
    early = [] if bound == "at once" else ["-Wl,--no-as-needed", "-lgcc_s"]
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, *early], check=True)
    ended = run(LD_PRELOAD=str(library))
    assert ended.returncode == 1, (ended.returncode, ended.stderr)
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: C++ exceptions end this process"), last
    assert "libother.so" in last and "import quadriga before" in last, last


def test_without_one_exceptions_are_caught():
    ended = run()
    assert ended.stdout == "caught\n", ended.stderr
