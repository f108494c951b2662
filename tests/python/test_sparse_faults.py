# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_faults.py: matrices and arguments that are wrong, and solves that fail.
import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import quadriga
from quadriga import sparse


def grid():
    return sparse.poisson((10, 10))


def solve(a, b=None, **options):
    b = np.ones(a.shape[0]) if b is None else b
    return sparse.Solver(a, M=options.pop("M", None), devices="emulated:2").solve(b, **options)


def test_indefinite_matrices_are_told():
    a = grid() - 3 * sp.eye_array(100)
    b = np.random.default_rng(1).standard_normal(100)
    result = solve(a, b)
    assert result.reason == "not_positive_definite" and result.info == -1
    assert np.isfinite(result.x).all()
    assert result.residual == pytest.approx(np.linalg.norm(b - a @ result.x))
    with pytest.warns(quadriga.linalg.LinAlgWarning, match="isn't positive definite"):
        assert sparse.cg(a, b, devices="cpu:1")[1] == -1


def test_singular_matrices_end():
    a = grid().tolil()
    a[7, :] = a[:, 7] = 0
    result = solve(a.tocsr())
    assert result.reason == "diverged" and result.info == -1
    assert np.isfinite(result.x).all()


@pytest.mark.parametrize("where", ["A", "b", "x0"])
def test_nans_are_told(where):
    a, b, x0 = grid(), np.ones(100), np.ones(100)
    {"A": a.data, "b": b, "x0": x0}[where][5] = np.nan
    result = solve(a, b, x0=x0)
    assert result.reason == "not_finite" and result.info == -1 and result.iterations == 0


def test_a_tolerance_below_rounding_stagnates():
    result = solve(grid(), rtol=1e-18)
    assert result.reason == "stagnated" and result.info > 0
    assert result.residual < 1e-12


def test_zeros_on_the_diagonal_are_named():
    a = grid()
    a.setdiag(np.where(np.arange(100) == 42, 0, 4))
    for call in (sparse.cg, sparse.gmres):
        with pytest.raises(quadriga.InvalidArgument, match="diagonal of row 42 is zero"):
            call(a, np.ones(100), M="jacobi", devices="cpu:1")
    with pytest.raises(quadriga.InvalidArgument, match="diagonal of row 3 is not finite"):
        solve(grid(), M=np.where(np.arange(100) == 3, np.inf, 1))


def test_broken_indices_are_named():
    a = grid()
    a.indices[7] = 100
    with pytest.raises(quadriga.InvalidArgument, match="column 100; expected 0 to 99"):
        solve(a)
    a.indices[7] = -1
    with pytest.raises(quadriga.InvalidArgument, match="column -1"):
        solve(a)
    a = grid()
    a.indptr[3] = 1000
    with pytest.raises(quadriga.InvalidArgument, match="row 3 begins at 1000"):
        solve(a)
    a = grid()
    a.indices, a.data = a.indices[:-2], a.data[:-2]
    with pytest.raises(quadriga.InvalidArgument, match="the last offset is 460"):
        solve(a)
    a.indices = a.indices[:-2]
    with pytest.raises(quadriga.InvalidArgument, match=r"A\.indices has shape"):
        solve(a)


def test_systems_of_no_rows_and_of_empty_rows():
    x, info = sparse.cg(sp.csr_array((0, 0)), np.ones(0), devices="cpu:1")
    assert x.shape == (0,) and info == 0
    x, info = sparse.cg(sp.csr_array((5, 5)), np.zeros(5), devices="cpu:1")
    assert not x.any() and info == 0
    assert solve(sp.csr_array((5, 5))).reason == "not_positive_definite"


@pytest.mark.parametrize(("arguments", "said"), [
    ((sp.csr_array((3, 4)), np.ones(3)), r"square matrix, but A has shape \(3, 4\)"),
    ((np.ones(3), np.ones(3)), "1 dimensions; expected 2"),
    ((np.eye(3), np.ones(4)), r"b has shape \(4,\); expected \(3,\) or \(3, k\)"),
    ((np.eye(3), np.ones((3, 1, 1))), r"b has shape \(3, 1, 1\)"),
    ((np.eye(3), np.ones(3), np.ones(2)), r"x0 has shape \(2,\)"),
    ((np.eye(3), ["a", "b", "c"]), "b is <U1"),
    ((np.eye(3).astype("O"), np.ones(3)), "A is object"),
    ((object(), np.ones(3)), "A is a object"),
])  # fmt: skip
def test_wrong_shapes_and_types_are_named(arguments, said):
    with pytest.raises(quadriga.InvalidArgument, match=said):
        sparse.cg(*arguments, devices="cpu:1")


@pytest.mark.parametrize(("options", "said"), [
    ({"rtol": -1}, "rtol is -1"),
    ({"atol": float("nan")}, "atol is nan"),
    ({"atol": None}, "atol is None"),
    ({"maxiter": -1}, "maxiter -1"),
    ({"maxiter": 1.5}, "maxiter is 1.5"),
    ({"M": "ilu"}, r"M is 'ilu'; expected one of \['jacobi', .*, 'aggregation'\]"),
    ({"M": np.ones(4)}, r"M has shape \(4,\)"),
    ({"M": np.ones(3) * 1j}, "expected a real M"),
    ({"devices": "cpu", "engine": 1}, "not both"),
])  # fmt: skip
def test_wrong_options_are_named(options, said):
    with pytest.raises(quadriga.InvalidArgument, match=said):
        sparse.cg(np.eye(3), np.ones(3), **{"devices": "cpu:1"} | options)


def test_wrong_arguments_of_solvers_and_grids():
    for wrong in ({"method": "lu"}, {"format": "ell"}, {"parts": 0}, {"order": "best"}):
        with pytest.raises(quadriga.InvalidArgument, match=next(iter(wrong))):
            sparse.Solver(np.eye(3), **wrong)
    with pytest.raises(quadriga.InvalidType, match="the solver computes in float64"):
        solve(np.eye(3), np.ones(3) * 1j)
    for wrong in ((), (2, 2, 2, 2), 0, (3, -1), (2**30, 2**30)):
        with pytest.raises(quadriga.InvalidArgument):
            sparse.poisson(wrong)
    with pytest.raises(quadriga.InvalidArgument, match="expected 5 or 9 in 2 dimensions"):
        sparse.poisson((3, 3), 7)
    with pytest.raises(quadriga.InvalidType, match="dtype is int64"):
        sparse.poisson(3, dtype=int)


def test_what_fits_no_device_is_refused_with_both_sizes():
    row = sp.coo_array((np.ones(40000), (np.zeros(40000, int), np.arange(40000))), (40000, 40000))
    with pytest.raises(quadriga.TooLarge, match=r"KiB|MiB"):
        sparse.cg(row + sp.eye_array(40000), np.ones(40000), devices="emulated:1,memory=64KiB")


def test_errors_in_callbacks_come_back_and_the_engine_works_on():
    with quadriga.Engine("emulated:2") as engine:
        solver = sparse.Solver(grid(), engine=engine)

        def fail(x):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            solver.solve(np.ones(100), callback=fail)
        assert solver.solve(np.ones(100)).info == 0


def test_progress_is_told_and_its_errors_end_the_solve():
    a = sparse.poisson((60, 60, 60))
    seen = []
    solver = sparse.Solver(a, devices="cpu:2")
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    assert solver.solve(b, rtol=1e-10, progress=seen.append).info == 0
    assert seen == sorted(seen)

    def fail(iterations):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solver.solve(b, rtol=0, maxiter=10**9, progress=fail)
    assert solver.solve(b).info == 0


@pytest.mark.parametrize(
    ("devices", "recorded"), [("emulated:2", False), ("emulated:2", True), ("cpu:2", None)]
)
def test_ctrl_c_ends_a_solve_within_a_second(devices, recorded):
    a = sparse.poisson((50, 50, 50))
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    with quadriga.Engine(devices) as engine:
        solver = sparse.Solver(a, recorded=recorded, engine=engine)
        sent = []

        def interrupt():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.5, interrupt)
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                solver.solve(b, rtol=1e-14, maxiter=10**9)
        assert time.monotonic() - sent[0] < 120, "a second, were the machine idle"
        timer.join()
        assert solver.solve(b).info == 0
