# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_split.py: products split by columns: results, bits, predictions.
import json

import click.testing
import numpy as np
import pytest
import scipy.sparse as sp
from gpus_of_tests import on_two_gpus
from scipy.sparse.linalg import cg as cg_of_scipy

import quadriga
from quadriga import sparse
from quadriga.cli.main import cli
from quadriga.errors import InvalidArgument

P100 = "machines/p100x2.json"


def scattered(n, half=4, seed=1):
    """Symmetric, positive definite, with columns anywhere: nearly all rows are border."""
    random = np.random.default_rng(seed)
    places = (np.repeat(np.arange(n), half), random.integers(0, n, half * n))
    upper = sp.coo_array((-random.random(half * n), places), shape=(n, n)).tocsr()
    a = upper + upper.T
    return (a + sp.diags_array(0.3 - a.sum(axis=0))).tocsr()


@pytest.mark.parametrize("m", [None, "jacobi", "block_jacobi"])
@pytest.mark.parametrize("devices", ["emulated:3", "emulated:2,peer=4GB/s", "cpu:2"])
def test_solutions_are_scipys(devices, m):
    a = scattered(1200)
    b = np.random.default_rng(2).standard_normal(a.shape[0])
    expected, _ = cg_of_scipy(a, b, rtol=1e-12)
    with quadriga.Engine(devices) as engine:
        solver = sparse.Solver(a, M=m, split="columns", engine=engine)
        assert solver.plan["split"] == "columns"
        assert sum(solver.plan["border_rows"]) > 0.9 * a.shape[0]
        assert np.allclose(solver @ b, a @ b, rtol=1e-12, atol=1e-12)
        result = solver.solve(b, rtol=1e-10)
        assert result.reason == "converged"
        assert np.linalg.norm(result.x - expected) <= 1e-8 * np.linalg.norm(expected)
        many = np.stack([b, 2 * b, b[::-1]], axis=1)
        assert np.allclose(solver @ many, a @ many, rtol=1e-12, atol=1e-12)
        solver.update(2 * a)
        assert np.allclose(solver @ b, 2 * (a @ b), rtol=1e-12, atol=1e-12)


def test_bits_repeat_for_the_same_parts_and_differ_between_numbers_of_devices():
    a = scattered(1500)
    b = np.random.default_rng(3).standard_normal(a.shape[0])
    found = {}
    for count in (1, 2, 3):
        for peer in ("", ",peer=4GB/s"):
            with quadriga.Engine(f"emulated:{count}{peer}") as engine:
                options = {"M": "jacobi", "parts": count, "recorded": False, "engine": engine}
                solver = sparse.Solver(a, split="columns", **options)
                x = solver.solve(b, rtol=1e-9).x.tobytes()
                assert found.setdefault(count, x) == x
                whole = sparse.Solver(a, **options).solve(b, rtol=1e-9).x.tobytes()
                assert found.setdefault("rows", whole) == whole
    assert found[1] == found["rows"] != found[2]
    assert found[2] != found[3]


def test_mixed_precision_meets_the_tolerance():
    a = scattered(900)
    b = np.random.default_rng(4).standard_normal(a.shape[0])
    solver = sparse.Solver(a, M="jacobi", split="columns", precision="mixed", devices="emulated:2")
    x = solver.solve(b, rtol=1e-10).x
    assert np.linalg.norm(b - a @ x) <= 1.01e-10 * np.linalg.norm(b)


def test_what_does_not_fit_passes_too():
    a = scattered(3000)
    b = np.random.default_rng(5).standard_normal(a.shape[0])
    with (
        quadriga.Engine("emulated:2,memory=128KiB") as small,
        quadriga.Engine("emulated:2") as large,
    ):
        options = {"M": "jacobi", "split": "columns", "recorded": False}
        tight = sparse.Solver(a, engine=small, **options)
        assert tight.plan["streamed_bytes"] > 0
        wide = sparse.Solver(a, engine=large, parts=len(tight.plan["devices"]), **options)
        one, other = (each.solve(b, rtol=1e-9) for each in (tight, wide))
        assert one.reason == "converged"
        assert tight.plan["first_rows"] == wide.plan["first_rows"]
        assert (one.x == other.x).all()


@pytest.mark.parametrize("split", ["rows", "columns"])
@pytest.mark.parametrize("make", [lambda: scattered(40000, 16), lambda: sparse.poisson((28,) * 3)])
def test_what_is_predicted_is_reached(split, make):
    with quadriga.Engine(f"machine={P100}", virtual_clock=True) as engine:
        solver = sparse.Solver(make(), format="csr", split=split, parts=2, engine=engine)
        (said,) = [
            way
            for way in solver.estimate()
            if (way["exchange"], way["route"]) == ("halo", "direct")
        ]
        reached = solver.measure_overlap()
    for part in said["parts"]:
        assert part["overlapped_seconds"] <= 1.0001 * part["reachable_seconds"]
        assert part["reachable_seconds"] <= 1.0001 * part["in_turn_seconds"]
    # A product also copies the vector that it starts from.
    copied = 4 * 8 * solver.shape[0] / 2 / 549e9
    assert reached["overlapped_seconds"] >= 0.98 * said["reachable_seconds"]
    assert reached["overlapped_seconds"] <= 1.1 * said["reachable_seconds"] + copied


def test_columns_are_quicker_where_nearly_all_rows_are_border_and_not_elsewhere():
    def iteration(a, split):
        with quadriga.Engine(f"machine={P100}", virtual_clock=True) as engine:
            options = {"M": "jacobi", "method": "classic_cg", "recorded": False, "parts": 2}
            solver = sparse.Solver(a, split=split, overlap=True, engine=engine, **options)
            times = [engine.now()]
            for _ in range(2):  # the first one also brings the matrix
                solver.solve(np.ones(a.shape[0]), rtol=0, maxiter=20)
                times.append(engine.now())
            return times[2] - times[1]

    wide = scattered(40000)
    assert iteration(wide, "columns") < 0.9 * iteration(wide, "rows")
    near = sparse.poisson((24,) * 3, 27)
    assert iteration(near, "columns") > 0.99 * iteration(near, "rows")


def test_what_needs_whole_rows_is_refused():
    a = scattered(300)
    with pytest.raises(InvalidArgument, match="split by columns with an M of several steps"):
        sparse.Solver(a, M="chebyshev", split="columns", devices="emulated:2")
    with pytest.raises(InvalidArgument, match="rows that stay whole"):
        sparse.Solver(a, split="columns", recorded=True, devices="emulated:2")
    with pytest.raises(InvalidArgument, match="split is 'x'; expected one of"):
        sparse.Solver(a, split="x")


def test_the_command_splits(tmp_path):
    a = scattered(800)
    sp.save_npz(tmp_path / "a.npz", a)
    np.save(tmp_path / "b.npy", np.ones(800))
    words = ["cg", str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]
    words += ["--split", "columns", "--estimate", "--devices", f"machine={P100}", "--json"]
    shown = click.testing.CliRunner().invoke(cli, words)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["estimates"][0]["reachable_seconds"] > 0
    assert np.linalg.norm(1 - a @ np.load(tmp_path / "x.npy")) <= 1.01e-5 * 800**0.5


@on_two_gpus
@pytest.mark.parametrize("layout", ["csr", "sell", "blocks"])
def test_on_gpus(layout):
    a = scattered(30000)
    b = np.random.default_rng(6).standard_normal(a.shape[0])
    xs = []
    with quadriga.Engine("cuda:2") as engine:
        for overlap in (False, True):
            solver = sparse.Solver(
                a, M="jacobi", split="columns", parts=2, format=layout, overlap=overlap,
                engine=engine,
            )  # fmt: skip
            assert np.allclose(solver @ b, a @ b, rtol=1e-12, atol=1e-12)
            result = solver.solve(b, rtol=1e-10)
            assert result.reason == "converged"
            xs.append(result.x.tobytes())
    assert xs[0] == xs[1]
