# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cuda_part.py: the package with its CUDA part where there is no driver, and how
# it finds CUDA's libraries.
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import quadriga
from quadriga import _core, cuda_libraries

ROOT = Path(__file__).parents[2]
OF_CUDA = ("libcuda.so", "libcublas", "libcusolver")
COMPUTES = """
import numpy as np, quadriga
quadriga.linalg.matmul(np.eye(8), np.eye(8), engine=quadriga.Engine("emulated:1,memory=1MiB"))
print(*(line.split()[-1] for line in open("/proc/self/maps")), sep="\\n")
"""


@pytest.fixture
def pathfinder(monkeypatch):
    """A finder that has cuBLAS and no cuSOLVER."""

    def find(name):
        if name != "cublas":
            raise RuntimeError(f"no {name}")
        return types.SimpleNamespace(abs_path=f"/somewhere/lib{name}.so.13")

    module = types.ModuleType("cuda.pathfinder")
    module.load_nvidia_dynamic_lib = find
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", module)
    cuda_libraries.load.cache_clear()
    yield
    cuda_libraries.load.cache_clear()


def test_computing_on_cores_opens_nothing_of_cuda():
    result = subprocess.run([sys.executable, "-c", COMPUTES], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "_core" in result.stdout
    assert not [name for name in OF_CUDA if name in result.stdout]


def test_what_is_found_is_told(pathfinder):
    assert cuda_libraries.load() == {"cublas": "/somewhere/libcublas.so.13"}


def test_without_a_finder_the_loader_looks(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    cuda_libraries.load.cache_clear()
    assert cuda_libraries.load() == {}
    cuda_libraries.load.cache_clear()


def test_libraries_are_needed_by_gpus_only():
    machine = quadriga.Machine.parse("emulated:2,memory=1MiB")
    assert not cuda_libraries.needed_by(machine)
    assert not cuda_libraries.needed_by("cpu:2")
    assert cuda_libraries.needed_by("cpu;cuda:2")


def test_gpus_that_are_absent_are_refused_with_a_reason():
    reason = _core.Machine.cuda_absence()
    if not reason:
        pytest.skip("there is a GPU")
    with pytest.raises(quadriga.Unavailable, match=reason):
        quadriga.Engine("cuda")
    if _core.cuda_libraries() and not Path("/proc/driver/nvidia").exists():
        assert "no CUDA driver" in reason


def test_the_extra_allows_what_the_toolkit_pins():
    with (ROOT / "pyproject.toml").open("rb") as file:
        extra = tomllib.load(file)["project"]["optional-dependencies"]["cuda"]
    lines = (ROOT / "tools/cuda.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    for name in ("nvidia-cublas", "nvidia-cusolver"):
        assert any(each.startswith(f"{name}>={pins[name]},<") for each in extra), (name, extra)
