# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_methods.py: arrangements of conjugate gradients, from Python.
"""Classic, single-reduction and pipelined conjugate gradients."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from quadriga import Engine, InvalidArgument, InvalidType, Machine, sparse
from quadriga.cli.main import status_of
from quadriga.errors import LinAlgWarning

METHODS = ("single_reduction_cg", "pipelined_cg")


@pytest.mark.parametrize("method", METHODS)
def test_methods_have_the_bits_of_one_device(method: str) -> None:
    a = sparse.poisson((40, 40), 5)
    b = np.random.default_rng(3).standard_normal((1600, 2))
    found = []
    for devices in ("emulated:1", "emulated:3"):
        solver = sparse.Solver(a, method, "jacobi", devices=devices)
        assert solver.plan["method"] == method
        assert solver.plan["method_reason"] == "asked for"
        result = solver.solve(b, rtol=1e-10)
        assert result.reason == "converged"
        assert result.method == method
        assert method != "pipelined_cg" or result.replacements > 0
        assert (np.linalg.norm(b - a @ result.x, axis=0) <= 1e-10 * np.linalg.norm(b, axis=0)).all()
        found.append(result)
    np.testing.assert_array_equal(found[0].x, found[1].x)
    classic = sparse.Solver(a, "classic_cg", "jacobi", devices="emulated:1").solve(b, rtol=1e-10)
    assert classic.method == "classic_cg"
    assert classic.replacements == 0
    assert abs(found[0].iterations - classic.iterations) <= 4


@pytest.mark.parametrize("method", METHODS)
def test_new_values_and_callbacks(method: str) -> None:
    a = sparse.poisson((12, 12, 12), 7)
    b = np.ones(1728)
    solver = sparse.Solver(a, method, devices="emulated:2")
    seen: list[int] = []
    result = solver.solve(b, callback=lambda x: seen.append(x.size))
    assert len(seen) == result.iterations
    solver.update(2 * a)
    halved = solver.solve(b)
    np.testing.assert_array_equal(2 * halved.x, result.x)


@pytest.mark.parametrize("method", METHODS)
def test_an_indefinite_matrix_is_noticed_as_by_classic_iterations(method: str) -> None:
    a = sparse.poisson((20, 20), 5).toarray() - 1.5 * np.eye(400)
    b = np.random.default_rng(1).standard_normal(400)
    results = [
        sparse.Solver(a, each, devices="emulated:2").solve(b, rtol=1e-12)
        for each in ("classic_cg", method)
    ]
    assert results[0].reason == results[1].reason == "not_positive_definite"
    assert results[0].iterations == results[1].iterations
    with pytest.warns(LinAlgWarning, match="isn't positive definite"):
        results[1].warn(1)


def test_cg_chooses_by_the_machine_and_says_why() -> None:
    a = sparse.poisson((30, 30), 5)
    machine = Machine.parse("emulated:2")
    with Engine(machine) as engine:
        plan = sparse.Solver(a, engine=engine).plan
    assert plan["method"] == "classic_cg"
    assert "no rates" in plan["method_reason"]
    aggregated = sparse.Solver(a, M="aggregation", devices="emulated:1").plan
    assert aggregated["method"] == "classic_cg"
    assert aggregated["method_reason"] == "M is several steps"


def test_what_cannot_be_is_refused() -> None:
    a = sparse.poisson((10, 10), 5)
    with pytest.raises(InvalidArgument, match="pipelined_cg"):
        sparse.Solver(a, "pipelined", devices="emulated:1")
    with pytest.raises(InvalidArgument, match="M of blocks of rows"):
        sparse.Solver(a, "pipelined_cg", "chebyshev", devices="emulated:1")
    with pytest.raises(InvalidArgument, match="corrections in single precision"):
        sparse.Solver(a, "pipelined_cg", precision="mixed", devices="emulated:1")


def test_the_command_line_takes_a_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    a = sparse.poisson((20, 20), 5)
    scipy_sparse.save_npz(tmp_path / "a.npz", a)
    np.save(tmp_path / "b.npy", np.ones(400))
    words = ["cg", str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]
    assert status_of([*words, "--method", "pipelined_cg", "--devices", "emulated:2"]) == 0
    assert "iterations of pipelined_cg" in capsys.readouterr().out
    x = np.load(tmp_path / "x.npy")
    assert np.linalg.norm(1 - a @ x) <= 1e-5 * 20


def test_the_number_of_devices_decides_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    a = sparse.poisson((40, 40), 5)
    b = np.random.default_rng(3).standard_normal(1600)
    told = json.loads(Machine.parse("emulated:3").to_json())
    for rate in ("bytes", "flops"):
        told["kernels"][rate] = {"emulated": {"1000": 1e-9}}
    for link in told["links"].values():
        link["latency"] = 1e-3
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(told))
    found = {}
    for fast in (False, True):
        with Engine(Machine.from_file(path)) as engine:
            solver = sparse.Solver(a, M="jacobi", parts=3, fast=fast, engine=engine)
            found[fast] = solver.solve(b, rtol=1e-9)
            reason = solver.plan["method_reason"]
            assert ("3 devices" in reason) == fast, reason
    assert [found[fast].method for fast in (False, True)] == ["classic_cg", "pipelined_cg"]
    for result in found.values():
        assert result.reason == "converged"
        assert np.linalg.norm(b - a @ result.x) <= 1.001e-9 * np.linalg.norm(b)
    with pytest.raises(InvalidType, match="fast is 1"):
        sparse.Solver(a, fast=1, devices="emulated:1")  # type: ignore[arg-type]
    scipy_sparse.save_npz(tmp_path / "a.npz", a)
    np.save(tmp_path / "b.npy", b)
    words = ["cg", str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]
    assert status_of([*words, "--fast", "--devices", f"machine={path}"]) == 0
    assert "converged" in capsys.readouterr().out
