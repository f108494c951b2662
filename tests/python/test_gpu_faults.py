# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_gpu_faults.py: a kernel that writes where no memory is. It ends CUDA's work in
# its process, so that it has one of its own; skipped without a GPU.
import subprocess
import sys

import pytest

import quadriga
from quadriga import nvrtc
from quadriga.errors import Unavailable

try:
    quadriga.Machine.parse("cuda:1")
    nvrtc._Compiler()
    ABSENCE = ""
except Unavailable as error:
    ABSENCE = str(error)
pytestmark = pytest.mark.skipif(bool(ABSENCE), reason=ABSENCE)

PROGRAM = '''
import numpy as np
import quadriga
from quadriga.errors import DeviceLost, Unavailable

def add_one(x):
    x += 1

good = quadriga.Codelet(add_one, ["update"], name="good", cuda=quadriga.CudaSource("""
    __global__ void good(quadriga::Tile<double> x) {
      const long long k = quadriga::thread_x();
      if (k < x.size()) x[k] += 1;
    }"""))
careless = quadriga.Codelet(None, ["update"], name="careless", cuda=quadriga.CudaSource("""
    __global__ void careless(quadriga::Tile<double> x) { *reinterpret_cast<double*>(64) = 1; }"""))
home, lost, late = np.zeros(100), np.zeros(100), np.zeros(100)
with quadriga.Engine("cuda:1,memory=64MiB") as engine:
    engine.submit(good, engine.data(home).update())
    engine.wait(timeout=60)
    engine.submit(careless, engine.data(lost).update())
    try:
        engine.wait(timeout=60)
    except DeviceLost as error:
        print("lost:", error)
    engine.submit(good, engine.data(late).update())
    engine.wait(timeout=60)
print("home:", home.sum(), "lost's home:", lost.sum(), "late:", late.sum())
try:
    quadriga.Engine("cuda:1")
except Unavailable as error:
    print("again:", error)
'''


def test_a_fault_names_its_kernel_and_the_host_goes_on():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=180, check=False
    )
    said = run.stdout + run.stderr
    assert run.returncode == 0, said
    lines = dict(line.split(": ", 1) for line in run.stdout.splitlines() if ": " in line)
    assert "careless" in lines["lost"] and "start a new one" in lines["lost"], said
    assert "home: 100.0 lost's home: 0.0 late: 100.0" in run.stdout, said
    assert "start a new one" in lines["again"], said
