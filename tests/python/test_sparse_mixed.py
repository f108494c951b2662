# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_mixed.py: single precision inside, the accuracy of double outside.
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import quadriga
from quadriga import sparse

DEVICES = ["cpu:2", "emulated:2,memory=64MiB"]


def right_side(n, k=None, dtype=float):
    random = np.random.default_rng(7)
    shape = (n,) if k is None else (n, k)
    b = random.standard_normal(shape).astype(dtype)
    return b + 1j * random.standard_normal(shape) if np.dtype(dtype).kind == "c" else b


def layered(n, contrast):
    """A grid whose stiffness jumps from layer to layer, and its diagonal with it."""
    weights = sp.diags_array(np.where(np.arange(n * n) // n % 2, contrast, 1.0))
    return sp.csr_array(weights @ sparse.poisson((n, n)) @ weights)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("jacobi", [None, "jacobi"])
def test_the_accuracy_is_that_of_double(devices, jacobi):
    a = sparse.poisson((17, 18, 19))
    b = right_side(a.shape[0])
    solver = sparse.Solver(a, M=jacobi, precision="mixed", devices=devices)
    result = solver.solve(b, rtol=1e-12)
    assert (result.reason, result.precision) == ("converged", "mixed")
    assert np.linalg.norm(b - a @ result.x) <= 1.001e-12 * np.linalg.norm(b)
    assert result.x.dtype == np.float64
    plain = sparse.Solver(a, M=jacobi, devices=devices).solve(b, rtol=1e-12)
    assert plain.precision == "float64"
    assert result.iterations <= 1.3 * plain.iterations
    assert result.residuals.shape == (result.iterations + 1,)


def test_bits_are_the_same_for_any_number_of_devices():
    a, b = sparse.poisson((20, 21)), right_side(420, 2)
    found = [
        sparse.Solver(a, precision="mixed", devices=f"emulated:{count},memory=32MiB").solve(
            b, rtol=1e-11
        )
        for count in (1, 2, 3)
    ]
    assert len({each.x.tobytes() for each in found}) == 1
    assert len({each.iterations for each in found}) == 1


@pytest.mark.parametrize("order", [None, "rcm"])
def test_complex_matrices_many_sides_starts_and_new_values(order):
    grid = sparse.poisson((15, 16)).astype(complex)
    phases = sp.diags_array(np.exp(1j * np.arange(240)))
    a = sp.csr_array(phases @ grid @ phases.conj())
    b = right_side(240, 3, complex)
    b[:, 1] = 0
    solver = sparse.Solver(a, M="jacobi", precision="mixed", order=order, devices="cpu:2")
    for matrix in (a, 3 * a):
        solver.update(matrix)
        result = solver.solve(b, x0=np.ones_like(b), rtol=1e-10, atol=1e-10)
        assert result.reason == "converged"
        assert result.precision == "mixed"
        left = np.linalg.norm(b - matrix @ result.x, axis=0)
        assert (left <= 1.001 * np.maximum(1e-10 * np.linalg.norm(b, axis=0), 1e-10)).all()
        assert result.residual == pytest.approx(left, rel=0.1, abs=1e-13)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_matrices_out_of_singles_range(scale):
    a, b = sparse.poisson((12, 12)) * scale, right_side(144)
    result = sparse.Solver(a, precision="mixed", devices="cpu:1").solve(b, rtol=1e-10)
    assert (result.reason, result.precision) == ("converged", "mixed")
    assert np.linalg.norm(b - a @ result.x) <= 1.001e-10 * np.linalg.norm(b)


def biharmonic(n):
    """Bending of a rod: a condition number near n^4, beyond what single precision resolves."""
    return sp.csr_array(sparse.poisson((n,)) @ sparse.poisson((n,)))


@pytest.mark.parametrize(
    ("a", "why"),
    [(biharmonic(150), "a correction ended"), (layered(12, 1e25), "diagonal of row 0 is zero")],
)
def test_what_single_precision_cannot_do_falls_back_and_says_so(a, why):
    b = np.ones(a.shape[0])
    with pytest.warns(
        quadriga.linalg.LinAlgWarning, match=f"single precision isn't enough .*{why}"
    ):
        solver = sparse.Solver(a, M="jacobi", precision="mixed", devices="cpu:1")
        result = solver.solve(b, rtol=1e-9)
    plain = sparse.Solver(a, M="jacobi", devices="cpu:1").solve(b, rtol=1e-9)
    assert (result.reason, result.precision) == (plain.reason, "float64")
    assert result.residuals.shape == (result.iterations + 1,)


def test_breakdowns_are_those_of_double():
    a = sp.diags_array(np.array([1.0, 2.0, -3.0, 4.0])).tocsr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", quadriga.linalg.LinAlgWarning)
        result = sparse.Solver(a, precision="mixed", devices="cpu:1").solve(np.ones(4))
        assert result.reason == "not_positive_definite"
        nan = sparse.Solver(sparse.poisson((4, 4)), precision="mixed", devices="cpu:1")
        assert nan.solve(np.full(16, np.nan)).reason == "not_finite"


def test_callbacks_progress_and_limits():
    a, b = sparse.poisson((30, 30)), right_side(900)
    solver = sparse.Solver(a, precision="mixed", devices="cpu:2")
    seen, told = [], []
    result = solver.solve(
        b, rtol=1e-10, callback=lambda x: seen.append(np.linalg.norm(b - a @ x)),
        progress=told.append,
    )  # fmt: skip
    assert len(seen) == result.iterations
    assert seen[-1] == pytest.approx(result.residual, rel=1e-3)
    assert told == sorted(told)
    with pytest.warns(quadriga.linalg.LinAlgWarning, match="as .iterations."):
        short = solver.solve(b, rtol=1e-10, maxiter=25)
    assert (short.reason, short.iterations, short.info) == ("iterations", 25, 25)
    assert solver.solve(np.zeros(900)).iterations == 0
    assert solver.solve(np.zeros((900, 0))).reason == "converged"
    x, info = sparse.cg(a, b, rtol=1e-10, precision="mixed", devices="cpu:2")
    assert info == 0
    assert np.linalg.norm(b - a @ x) <= 1.001e-10 * np.linalg.norm(b)


def test_bad_arguments_are_named():
    a = sparse.poisson((4, 4))
    with pytest.raises(quadriga.InvalidArgument, match="precision is 'single'"):
        sparse.Solver(a, precision="single", devices="cpu:1")
    with pytest.raises(quadriga.InvalidArgument, match="float32.*expected float64"):
        sparse.Solver(a.astype(np.float32), precision="mixed", devices="cpu:1")
    with pytest.raises(quadriga.InvalidArgument, match="precision"):
        sparse.cg(lambda x: x, np.ones(4), precision="mixed", devices="cpu:1")
