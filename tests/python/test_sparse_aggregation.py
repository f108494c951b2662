# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_aggregation.py: levels below a matrix, made or given, as preconditioners.
import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_of_tests import on_gpu

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness
from quadriga.cli.main import DONE, MISUSED, status_of
from quadriga.errors import InvalidArgument, InvalidType

DEVICES = ["cpu:2", "emulated:1", "emulated:3"]


def rigid_motions(shape):
    """Three translations and three rotations of the nodes of a box."""
    points = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, 3)
    points = points - points.mean(axis=0)
    motions = np.zeros((len(points), 3, 6))
    motions[:, [0, 1, 2], [0, 1, 2]] = 1
    for axis, (i, j) in enumerate([(1, 2), (2, 0), (0, 1)]):
        motions[:, i, 3 + axis] = -points[:, j]
        motions[:, j, 3 + axis] = points[:, i]
    return motions.reshape(-1, 6)


def pairs_of(a):
    """Two levels, each of pairs of rows of the one above, as pyamg holds them."""
    levels = [SimpleNamespace(A=a)]
    for _ in range(2):
        n = levels[-1].A.shape[0]
        p = sp.csr_array((np.ones(n), (np.arange(n), np.arange(n) // 2)))
        levels[-1].P, levels[-1].R = p, p.T.tocsr()
        levels.append(SimpleNamespace(A=(p.T @ levels[-1].A @ p).tocsr()))
    return SimpleNamespace(levels=levels)


@pytest.mark.parametrize("devices", DEVICES)
def test_rigid_motions_save_iterations_of_elasticity(devices):
    shape = (12, 11, 10)
    a = box_stiffness(shape)
    b = np.random.default_rng(2).standard_normal(a.shape[0])
    with quadriga.Engine(devices) as engine:
        counts = []
        for m in ["jacobi", "aggregation", sparse.Aggregation(rigid_motions(shape))]:
            solver = sparse.Solver(a, M=m, engine=engine)
            found = solver.solve(b, rtol=1e-8)
            assert found.reason == "converged"
            assert np.linalg.norm(b - a @ found.x) <= 1.001e-8 * np.linalg.norm(b)
            counts.append(found.iterations)
        assert [each["rows"] for each in solver.plan["levels"]][0] == a.shape[0]
    assert counts[1] < counts[0] / 4 and counts[2] < 0.9 * counts[1]


def test_an_order_keeps_nodes_together():
    shape = (9, 8, 7)
    a = box_stiffness(shape)
    order = np.random.default_rng(5).permutation(a.shape[0] // 3)
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    shuffled, motions = a[rows][:, rows], rigid_motions(shape)[rows]
    m = sparse.Aggregation(motions, unknowns=3)
    b = np.ones(a.shape[0])
    plain = sparse.Solver(shuffled, M=m, devices="emulated:2")
    ordered = sparse.Solver(shuffled, M=m, order="rcm", devices="emulated:2")
    assert ordered.plan["format"] == "blocks"
    assert sum(ordered.plan["halo_rows"]) < sum(plain.plan["halo_rows"]) / 2
    one, other = plain.solve(b, rtol=1e-9), ordered.solve(b, rtol=1e-9)
    assert one.reason == other.reason == "converged"
    assert abs(one.iterations - other.iterations) <= 5
    assert np.abs(one.x - other.x).max() < 1e-6 * np.abs(one.x).max()


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_a_given_hierarchy_is_used(devices, dtype):
    a = sparse.poisson((40, 30), dtype=dtype)
    b = np.random.default_rng(3).standard_normal((a.shape[0], 2)).astype(dtype)
    with quadriga.Engine(devices) as engine:
        jacobi = sparse.Solver(a, M="jacobi", engine=engine).solve(b)
        solver = sparse.Solver(a, M=pairs_of(a), engine=engine)
        found = solver.solve(b)
        assert [each["rows"] for each in solver.plan["levels"]] == [1200, 600, 300]
        x, info = sparse.cg(a, b, M=pairs_of(a), engine=engine)
    assert found.reason == "converged" and 2 * found.iterations < jacobi.iterations
    assert info == 0 and np.array_equal(x, found.x)


@pytest.mark.parametrize("m", ["aggregation", None])
def test_levels_in_mixed_precision(m):
    a = sparse.poisson((30, 20), 9) * 1e6
    b = np.random.default_rng(3).standard_normal(a.shape[0])
    found = sparse.Solver(a, M=m or pairs_of(a), precision="mixed").solve(b, rtol=1e-10)
    double = sparse.Solver(a, M=m or pairs_of(a)).solve(b, rtol=1e-10)
    assert found.reason == "converged" and found.precision == "mixed"
    assert found.iterations < 2 * double.iterations


@pytest.mark.parametrize("devices", DEVICES)
def test_dependent_vectors_change_nothing(devices):
    a = sparse.poisson((30, 25))
    b = np.random.default_rng(4).standard_normal(a.shape[0])
    twice = np.ones((a.shape[0], 2)) * [1, 3]
    counts = []
    for vectors in (None, twice):
        solver = sparse.Solver(a, M=sparse.Aggregation(vectors), devices=devices)
        found = solver.solve(b, rtol=1e-8)
        assert found.reason == "converged"
        counts.append(found.iterations)
    # The second vector is a column of zeros: its unknowns are solved by themselves.
    assert abs(counts[0] - counts[1]) <= 1


def test_new_values_on_old_aggregates():
    a = sparse.poisson((25, 20, 4))
    b = np.ones(a.shape[0])
    solver = sparse.Solver(a, M="aggregation")
    before = solver.solve(b, rtol=1e-9).iterations
    solver.update(a * 50.0)
    found = solver.solve(b, rtol=1e-9)
    assert abs(found.iterations - before) <= 1
    assert np.linalg.norm(b - 50 * (a @ found.x)) <= 1.01e-9 * np.linalg.norm(b)


@pytest.mark.parametrize(
    "m, said",
    [
        (sparse.Aggregation(np.ones(5)), "near_null has shape"),
        (sparse.Aggregation(np.ones((600, 0))), "near_null has shape"),
        (sparse.Aggregation(np.full(600, np.nan)), "infinities or NaNs"),
        (sparse.Aggregation(np.ones(600) * 1j), "expected real"),
        (sparse.Aggregation(unknowns=7), "divisor of n"),
        (sparse.Aggregation(strength=-1.0), "strength"),
        (sparse.Aggregation(strength="much"), "strength"),
        (sparse.Aggregation(degree=0), "degree"),
        (pairs_of(sparse.poisson((10, 8))), "A has shape"),
        (SimpleNamespace(levels=[SimpleNamespace(A=sparse.poisson((30, 20)))]), "one level"),
    ],
)
def test_wrong_levels_are_named(m, said):
    with pytest.raises((InvalidArgument, InvalidType), match=said):
        sparse.Solver(sparse.poisson((30, 20)), M=m)


def test_an_order_of_a_given_hierarchy_is_refused():
    a = sparse.poisson((30, 20))
    with pytest.raises(InvalidArgument, match="order"):
        sparse.Solver(a, M=pairs_of(a), order="rcm")


def test_aggregation_by_the_command(tmp_path, capsys):
    shape = (6, 6, 6)
    a = box_stiffness(shape)
    sp.save_npz(tmp_path / "a.npz", a)
    np.save(tmp_path / "b.npy", np.ones(a.shape[0]))
    np.save(tmp_path / "v.npy", rigid_motions(shape))
    words = ["cg", str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]
    near_null = ["--near-null", str(tmp_path / "v.npy")]
    counts = []
    for options in (["jacobi"], ["aggregation"], ["aggregation", *near_null, "--degree", "3"]):
        assert status_of([*words, "--json", "--precondition", *options]) == DONE
        counts.append(json.loads(capsys.readouterr().out)["iterations"])
    assert counts == sorted(counts, reverse=True) and len(set(counts)) == 3
    assert status_of([*words, "--precondition", "jacobi", *near_null]) == MISUSED


@on_gpu
def test_levels_on_a_gpu_by_tasks_and_recorded():
    shape = (14, 12, 10)
    a = box_stiffness(shape)
    b = np.random.default_rng(2).standard_normal(a.shape[0])
    m = sparse.Aggregation(rigid_motions(shape))
    with quadriga.Engine("cuda:1") as engine:
        found = [
            sparse.Solver(a, M=m, recorded=way, engine=engine).solve(b, rtol=1e-8)
            for way in (True, False)
        ]
    assert found[0].reason == "converged" and np.array_equal(found[0].x, found[1].x)
