# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_columns.py: methods of SciPy's with several right-hand sides, which share
# products.
import threading

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as reference

import quadriga
from quadriga import sparse
from quadriga.sparse import columns

N = 300
RTOL = 1e-4
METHODS = ["bicgstab", "gmres", "minres"]


def system(width=3, dtype=float):
    a = (sparse.poisson((20, 15)) + sp.diags_array(np.linspace(0.1, 2, N))).astype(dtype)
    b = np.random.default_rng(4).standard_normal((N, width)).astype(dtype)
    return a.tocsr(), b * np.array([1, 1e-6, 1e4, 0, 3])[:width]


@pytest.mark.parametrize(("name", "dtype"), [
    ("bicgstab", np.float64), ("gmres", np.float64), ("minres", np.float64),
    ("bicgstab", np.complex128), ("gmres", np.complex64),
])  # fmt: skip
def test_each_column_is_solved_as_if_it_were_alone(name, dtype):
    (a, b), x0 = system(5, dtype), np.ones((N, 5), dtype)
    call = getattr(sparse, name)
    with quadriga.Engine("emulated:2") as engine:
        x, info = call(a, b, x0, rtol=RTOL, M="jacobi", engine=engine)
        assert x.shape == b.shape and info == 0
        for column in range(5):
            alone, _ = call(a, b[:, column], x0[:, column], rtol=RTOL, M="jacobi", engine=engine)
            assert (x[:, column] == alone).all()
    norms = np.linalg.norm(b - a @ x, axis=0)
    assert (norms <= RTOL * np.linalg.norm(b, axis=0)).all()


@pytest.mark.parametrize("name", METHODS)
def test_columns_share_products(name, monkeypatch):
    a, b = system()
    widths = []
    multiply = sparse.Solver.__matmul__

    def counted(self, x):
        widths.append(1 if x.ndim == 1 else x.shape[1])
        return multiply(self, x)

    monkeypatch.setattr(sparse.Solver, "__matmul__", counted)
    call = getattr(sparse, name)
    alone = []
    for column in range(3):
        call(a, b[:, column], rtol=1e-8, devices="cpu:1")
        alone.append(len(widths))
        widths.clear()
    call(a, b, rtol=1e-8, devices="cpu:1")
    assert len(widths) == max(alone) and sum(widths) == sum(alone)


def test_operators_take_columns_too():
    a, b = system()
    together, at_once = [], [0, 0]

    class Operator(reference.LinearOperator):
        def __init__(self):
            super().__init__(a.dtype, a.shape)

        def _matvec(self, x):
            return a @ x

        def _matmat(self, x):
            together.append(x.shape[1])
            return a @ x

    def inverse(r):
        at_once[0] += 1
        at_once[1] = max(at_once)
        found = r / a.diagonal()
        at_once[0] -= 1
        return found

    m = reference.LinearOperator(a.shape, matvec=inverse)
    for left in (Operator(), lambda x: a @ x, a):
        x, info = sparse.cg(left, b, rtol=1e-8, M=m, devices="cpu:1")
        assert info == 0
        assert (np.linalg.norm(b - a @ x, axis=0) <= 1e-8 * np.linalg.norm(b, axis=0)).all()
    assert max(together) == 3 and at_once[1] == 1


@pytest.mark.parametrize("name", METHODS)
def test_the_worst_column_is_told(name):
    a, b = system()
    b[:, 1] = 0  # Solved at once.
    x, info = getattr(sparse, name)(a, b, rtol=1e-8, maxiter=1, devices="cpu:1", **(
        {"restart": 2} if name == "gmres" else {}
    ))  # fmt: skip
    assert info > 0 and not x[:, 1].any()


def test_a_failure_of_one_column_ends_all():
    a, b = system()
    before = threading.active_count()

    def fail(r):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sparse.gmres(a, b, M=reference.LinearOperator(a.shape, matvec=fail), devices="cpu:1")
    with pytest.raises(KeyError, match="mine"):
        sparse.gmres(fail, b, devices="cpu:1")
    assert threading.active_count() <= before, "columns are still there"


@pytest.mark.parametrize(("options", "said"), [
    ({"callback": print}, r"callback is given, and b has shape \(300, 3\)"),
    ({"x0": np.ones(N)}, r"x0 has shape \(300,\); expected that of b"),
])  # fmt: skip
def test_what_columns_cant_have_is_named(options, said):
    a, b = system()
    with pytest.raises(quadriga.InvalidArgument, match=said):
        sparse.minres(a, b, **options, devices="cpu:1")


def test_no_columns_have_no_solution_to_find():
    a, b = system(0)
    x, info = sparse.bicgstab(a, b, devices="cpu:1")
    assert x.shape == (N, 0) and info == 0


@pytest.mark.parametrize("name", METHODS)
def test_many_columns_are_few_threads(name, monkeypatch):
    a, _ = system()
    b = np.random.default_rng(6).standard_normal((N, 90))
    b[:, 5] = 0  # Ends at once: its thread goes on with another column.
    most, widths = [0], []
    multiply = sparse.Solver.__matmul__

    def counted(self, x):
        names = [each.name for each in threading.enumerate()]
        most[0] = max(most[0], sum(each.startswith("columns ") for each in names))
        widths.append(1 if x.ndim == 1 else x.shape[1])
        return multiply(self, x)

    monkeypatch.setattr(sparse.Solver, "__matmul__", counted)
    call = getattr(sparse, name)
    x, info = call(a, b, rtol=RTOL, devices="cpu:1")
    norms = np.linalg.norm(b - a @ x, axis=0)
    assert info == 0 and (norms <= RTOL * np.linalg.norm(b, axis=0)).all()
    assert max(widths) == most[0] == columns._MOST_THREADS
    for column in (0, 40, 89):
        assert (x[:, column] == call(a, b[:, column], rtol=RTOL, devices="cpu:1")[0]).all()
