# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_preconditioners.py: preconditioners beside SciPy with the same ones.
import json

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import linalg as reference

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness
from quadriga.cli.main import DONE, status_of
from quadriga.errors import InvalidArgument

DEVICES = ["cpu:2", "emulated:1", "emulated:3,memory=16MiB"]


def block_inverses(a, size):
    """The inverses of the diagonal blocks, as a sparse matrix."""
    n = a.shape[0] // size
    blocks = a.tobsr((size, size)).tocsr().toarray().reshape(n, size, n, size)
    return sp.block_diag([np.linalg.inv(blocks[i, :, i]) for i in range(n)]).tocsr()


def iterations(a, b, m, **options):
    made = []
    x, info = reference.cg(a, b, M=m, callback=lambda x: made.append(0), **options)
    assert info == 0
    return x, len(made)


def scaled_stiffness():
    """Nodes of different weight, whose directions depend on each other."""
    a = box_stiffness((7, 6, 5))
    random = np.random.default_rng(1)
    nodes = [np.eye(3) + 0.9 * random.uniform(-1, 1, (3, 3)) for _ in range(a.shape[0] // 3)]
    scale = sp.block_diag([node * random.uniform(0.1, 10) for node in nodes])
    return (scale.T @ a @ scale).tocsr()


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("columns", [None, 3])
def test_block_jacobi_converges_as_scipys(devices, columns):
    a = scaled_stiffness()
    n = a.shape[0]
    b = np.random.default_rng(2).standard_normal(n if columns is None else (n, columns))
    with quadriga.Engine(devices) as engine:
        result = sparse.Solver(a, M="block_jacobi", engine=engine).solve(b, rtol=1e-9)
        points = sparse.Solver(a, M="jacobi", engine=engine).solve(b, rtol=1e-9)
    first = b if columns is None else b[:, 0]
    expected, count = iterations(a, first, block_inverses(a, 3), rtol=1e-9)
    x = result.x if columns is None else result.x[:, 0]
    assert np.abs(x - expected).max() < 1e-6 * np.abs(expected).max()
    if columns is None:
        assert abs(result.iterations - count) <= max(2, count // 50)
    assert result.iterations < 0.8 * points.iterations
    assert result.reason == "converged"


def test_block_jacobi_of_a_given_size_and_with_new_values():
    a = scaled_stiffness()
    b = np.ones(a.shape[0])
    for size in (2, 3):
        solver = sparse.Solver(a, M=("block_jacobi", size), devices="emulated:2")
        _, count = iterations(a, b, block_inverses(a, size), rtol=1e-3)
        assert abs(solver.solve(b, rtol=1e-3).iterations - count) <= max(2, count // 50)
        found = solver.solve(b, rtol=1e-9)
        solver.update(4 * a)
        assert np.abs(4 * solver.solve(b, rtol=1e-9).x - found.x).max() < 1e-6 * abs(found.x).max()


def test_block_jacobi_in_mixed_precision():
    a = box_stiffness((7, 6, 5))
    b = np.ones(a.shape[0])
    x, info = sparse.cg(a, b, M="block_jacobi", precision="mixed", rtol=1e-8, devices="emulated:2")
    assert info == 0 and np.linalg.norm(b - a @ x) <= 1.01e-8 * np.linalg.norm(b)


def test_wrong_blocks_are_refused():
    with pytest.raises(InvalidArgument, match="blocks of 2, 3 or 4 rows in a matrix of 35"):
        sparse.Solver(sparse.poisson((7, 5)), M="block_jacobi")
    with pytest.raises(InvalidArgument, match="blocks of 4 rows in a matrix of 42"):
        sparse.Solver(sparse.poisson((7, 6)), M=("block_jacobi", 4))
    with pytest.raises(InvalidArgument, match="rows of blocks"):
        sparse.Solver(sparse.poisson((7, 6)), M=("block_jacobi", 9))


def test_block_jacobi_by_the_command(tmp_path, capsys):
    a = scaled_stiffness()
    sp.save_npz(tmp_path / "a.npz", a)
    np.save(tmp_path / "b.npy", np.ones(a.shape[0]))
    words = ["cg", str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]
    counts = []
    for name in ("block_jacobi", "jacobi"):
        assert status_of([*words, "--precondition", name, "--json"]) == DONE
        counts.append(json.loads(capsys.readouterr().out)["iterations"])
    assert counts[0] < counts[1]
