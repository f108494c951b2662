# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_chebyshev.py: polynomials as preconditioners, beside SciPy's iterations.
import json

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_of_tests import on_gpu
from scipy.sparse import linalg as reference

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness
from quadriga.cli.main import DONE, MISUSED, status_of
from quadriga.errors import InvalidArgument

DEVICES = ["cpu:2", "emulated:1", "emulated:3,memory=16MiB"]


def chebyshev(a, bounds, degree):
    """The polynomial by the recurrence of Saad's book, algorithm 12.1, for any vector."""
    low, high = bounds
    centre, half = (high + low) / 2, (high - low) / 2
    inverse = 1 / a.diagonal()

    def apply(r):
        z = d = inverse * r / centre
        last = half / centre
        for _ in range(degree - 1):
            now = 1 / (2 * centre / half - last)
            d = now * last * d + 2 * now / half * inverse * (r - a @ z)
            z, last = z + d, now
        return z

    return reference.LinearOperator(a.shape, matvec=apply, dtype=a.dtype)


def iterations(a, b, m, **options):
    made = []
    x, info = reference.cg(a, b, M=m, callback=lambda x: made.append(0), **options)
    assert info == 0
    return x, len(made)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("degree", [2, 5])
def test_chebyshev_converges_as_scipy_with_the_same_polynomial(devices, degree):
    a = box_stiffness((7, 6, 5))
    b = np.random.default_rng(2).standard_normal(a.shape[0])
    solver = sparse.Solver(a, M=("chebyshev", degree), devices=devices)
    found = solver.solve(b, rtol=1e-8)
    x, count = iterations(a, b, chebyshev(a, solver.plan["eigenvalues"], degree), rtol=1e-8)
    assert found.reason == "converged"
    assert abs(found.iterations - count) <= 2
    assert np.abs(found.x - x).max() < 1e-6 * np.abs(x).max()


def test_bounds_of_eigenvalues_hold():
    a = box_stiffness((7, 6, 5))
    scale = sp.diags_array(1 / np.sqrt(a.diagonal()))
    exact = np.linalg.eigvalsh((scale @ a @ scale).toarray())
    low, high = sparse.Solver(a, M="chebyshev", devices="emulated:2").plan["eigenvalues"]
    assert exact[-1] <= high < 1.25 * exact[-1]
    assert 0 < low < 0.2 * high and low >= 0.999 * exact[0]


def test_chebyshev_saves_iterations_also_of_many_columns():
    a = sparse.poisson((30, 20, 10), 27)
    b = np.random.default_rng(1).standard_normal((a.shape[0], 3))
    with quadriga.Engine("emulated:2") as engine:
        few = sparse.Solver(a, M="chebyshev", engine=engine).solve(b, rtol=1e-9)
        many = sparse.Solver(a, M="jacobi", engine=engine).solve(b, rtol=1e-9)
    assert few.reason == "converged" and 2 * few.iterations < many.iterations
    assert np.abs(few.x - many.x).max() < 1e-7 * np.abs(many.x).max()


def test_chebyshev_in_mixed_precision():
    a = box_stiffness((7, 6, 5))
    b = np.ones(a.shape[0])
    solver = sparse.Solver(a, M="chebyshev", precision="mixed", devices="emulated:2")
    found = solver.solve(b, rtol=1e-9)
    assert found.reason == "converged" and found.precision == "mixed"
    assert np.linalg.norm(b - a @ found.x) <= 1.01e-9 * np.linalg.norm(b)


def test_wrong_degrees_are_refused():
    for wrong in (("chebyshev", 0), ("chebyshev", "4"), ("chebyshev", 2, 3), ("jacobi", 2)):
        with pytest.raises((InvalidArgument, TypeError)):
            sparse.Solver(sparse.poisson((7, 6)), M=wrong)
    with pytest.raises(InvalidArgument, match="diagonal of row 1 is zero"):
        sparse.Solver(np.array([[1.0, 2.0], [2.0, 0.0]]), M="chebyshev")


def test_chebyshev_by_the_command(tmp_path, capsys):
    a = sparse.poisson((20, 15))
    sp.save_npz(tmp_path / "a.npz", a)
    np.save(tmp_path / "b.npy", np.ones(a.shape[0]))
    words = ["cg", str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]
    counts = []
    for options in (["jacobi"], ["chebyshev"], ["chebyshev", "--degree", "8"]):
        assert status_of([*words, "--json", "--precondition", *options]) == DONE
        counts.append(json.loads(capsys.readouterr().out)["iterations"])
    assert counts[0] > counts[1] > counts[2]
    assert status_of([*words, "--precondition", "jacobi", "--degree", "3"]) == MISUSED
    capsys.readouterr()


@on_gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_chebyshev_on_a_gpu_by_tasks_and_recorded(dtype):
    a = box_stiffness((12, 11, 10)).astype(dtype)
    b = np.random.default_rng(2).standard_normal((a.shape[0], 2)).astype(dtype)
    rtol = 1e-4 if dtype == "float32" else 1e-9
    with quadriga.Engine("cuda:1,memory=1GiB") as engine:
        found = [
            sparse.Solver(a, M="chebyshev", recorded=recorded, engine=engine).solve(b, rtol=rtol)
            for recorded in (False, True)
        ]
    host = sparse.Solver(a, M="chebyshev", devices="cpu:2").solve(b, rtol=rtol)
    assert found[0].iterations == found[1].iterations
    assert np.array_equal(found[0].x, found[1].x)
    assert abs(found[0].iterations - host.iterations) <= 2
    assert found[0].reason == "converged"
