# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cli_sparse.py: quadriga cg from files to a file.
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from quadriga import sparse
from quadriga.cli.main import status_of

DONE, FAILED, MISUSED = range(3)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a command line in a folder with A.mtx, A.npz, b.npy and B.npy: (status, out, err)."""
    monkeypatch.chdir(tmp_path)
    a = sparse.poisson((9, 8))
    scipy.io.mmwrite("A.mtx", a, symmetry="symmetric")
    sp.save_npz("A.npz", a)
    random = np.random.default_rng(1)
    np.save("b.npy", random.standard_normal(72))
    np.save("B.npy", random.standard_normal((72, 3)))

    def call(*arguments):
        status = status_of([str(each) for each in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def residual(path, right="b.npy"):
    b = np.load(right)
    return np.linalg.norm(b - sparse.poisson((9, 8)) @ np.load(path)) / np.linalg.norm(b)


@pytest.mark.parametrize("a", ["A.mtx", "A.npz"])
@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
def test_a_system_in_files(run, a, devices):
    status, out, err = run("cg", a, "b.npy", "-o", "x.npy", "--devices", devices,
                           "--precondition", "jacobi", "--rtol", 1e-9)  # fmt: skip
    assert (status, err) == (DONE, "")
    assert "x.npy: written" in out and "converged after" in out
    assert residual("x.npy") <= 1e-9


def test_results_as_json(run):
    status, out, _ = run("cg", "A.mtx", "B.npy", "-o", "x.npy", "--devices", "emulated:2", "--json")
    found = json.loads(out)
    assert status == DONE
    assert found["reason"] == "converged" and found["info"] == 0
    assert found["devices"] == ["emulated0", "emulated1"] and len(found["residual"]) == 3
    assert found["counters"]["host_bytes"] > 0 and found["solve_seconds"] > 0
    assert residual("x.npy", "B.npy") <= 1e-5


def test_mixed_precision(run):
    call = ["cg", "A.mtx", "b.npy", "-o", "x.npy", "--devices", "cpu:1", "--rtol", 1e-12, "--json"]
    status, out, _ = run(*call, "--precision", "mixed")
    assert (status, json.loads(out)["precision"]) == (DONE, "mixed")
    assert residual("x.npy") <= 1e-12
    status, out, _ = run(*call)
    assert json.loads(out)["precision"] == "float64"


def test_what_did_not_converge_is_written_and_fails(run):
    status, out, err = run("cg", "A.mtx", "b.npy", "-o", "x.npy", "--maxiter", 3, "--json")
    assert status == FAILED and json.loads(out)["reason"] == "iterations"
    assert "x.npy holds the last x: iterations after 3 iterations" in err
    assert 1e-5 < residual("x.npy") < 1


@pytest.mark.parametrize(("arguments", "status", "said"), [
    (("absent.mtx", "b.npy"), FAILED, "can't read absent.mtx"),
    (("b.npy", "b.npy"), FAILED, "b.npy is not a Matrix Market file"),
    (("A.mtx", "A.mtx"), FAILED, "not a .npy file"),
    (("A.mtx", "b.npy", "--devices", "toaster"), MISUSED, "toaster"),
    (("A.mtx", "b.npy", "--precondition", "ilu"), MISUSED, "ilu"),
    (("A.mtx", "b.npy", "--rtol", "-1"), MISUSED, "rtol"),
])  # fmt: skip
def test_misuse_is_named_and_writes_nothing(run, tmp_path, arguments, status, said):
    found, _, err = run("cg", *arguments, "-o", "x.npy")
    assert found == status and said in err
    assert not (tmp_path / "x.npy").exists()


def test_shapes_that_disagree_and_lost_inputs(run):
    np.save("short.npy", np.ones(5))
    status, _, err = run("cg", "A.mtx", "short.npy", "-o", "x.npy")
    assert status == FAILED and "short.npy: shape (5,) doesn't fit A's (72, 72)" in err
    status, _, err = run("cg", "A.mtx", "b.npy", "-o", "b.npy")
    assert status == MISUSED and "same file" in err


def test_a_folder_of_mapped_arrays_and_a_file_for_parts(run):
    a = sparse.poisson((9, 8))
    Path("A").mkdir()
    for name in ("indptr", "indices", "data"):
        np.save(f"A/{name}.npy", getattr(a, name))
    call = ["cg", "A", "b.npy", "-o", "x.npy", "--devices", "emulated:2"]
    status, _, err = run(*call, "--spill", "parts.bin")
    assert (status, err) == (DONE, "") and not Path("parts.bin").exists()
    assert residual("x.npy") <= 1e-5
    status, _, err = run(*call, "--spill", "b.npy")
    assert status != DONE and "b.npy" in err
    Path("A/data.npy").unlink()
    status, _, err = run(*call)
    assert status == FAILED and "data.npy" in err
