# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_vectors.py: methods written on distributed vectors and scalars.
import copy
import os
import signal
import threading
import time

import numpy as np
import pytest

import quadriga
from quadriga import sparse
from quadriga.errors import InvalidArgument, InvalidType
from quadriga.sparse import dot, norm, textbook

DEVICES = ("emulated:1", "emulated:2", "emulated:3")
TYPES = (np.float32, np.float64, np.complex64, np.complex128)


@pytest.fixture
def matrix():
    with quadriga.Engine("emulated:2,memory=64MiB") as engine:
        yield sparse.Matrix(sparse.poisson((12, 11)), engine=engine)


def conjugate_gradients(A, b, M, rtol):
    x, r = A.zeros(), b.copy()
    z = M * r
    p, rho, tolerance = z, dot(r, z), rtol * norm(b)
    while norm(r) > tolerance:
        q = A @ p
        alpha = rho / dot(p, q)
        x += alpha * p
        r -= alpha * q
        z = M * r
        last, rho = rho, dot(r, z)
        p = z + rho / last * p
    return x


def chebyshev(A, b, low, high, iterations):
    """Saad, algorithm 12.1: without dot products, so that nothing is read."""
    x, r = A.zeros(), b.copy()
    middle, half = (high + low) / 2, (high - low) / 2
    sigma = middle / half
    rho = 1 / sigma
    d = r / middle
    for _ in range(iterations):
        x += d
        r -= A @ d
        last, rho = rho, 1 / (2 * sigma - rho)
        d = rho * last * d + (2 * rho / half) * r
    return x


def on_all_devices(a, method):
    """What `method(matrix)` returns, with the bits of one device."""
    found = [method(sparse.Matrix(a, devices=each)).to_array() for each in DEVICES]
    assert all(each.tobytes() == found[0].tobytes() for each in found)
    return found[0]


def test_one_textbook_serves_vectors_of_any_kind():
    """Those in parts on devices, and NumPy's, as those of libraries on GPUs."""
    a = sparse.poisson((12, 11))
    b = np.random.default_rng(1).standard_normal(132)
    inverse = 1 / a.diagonal()

    def first(A, M, x, r, dot, count=20):
        steps = textbook.conjugate_gradients(A, M, x, r, dot, lambda curvature, rho: None)
        return [next(steps) for _ in range(count)][-1]

    x, r = first(lambda v: a @ v, lambda v: inverse * v, np.zeros(132), b, np.dot)
    np.testing.assert_allclose(r, b - a @ x, atol=1e-13)
    for devices in DEVICES:
        A = sparse.Matrix(a, devices=devices)
        M = A.vector(inverse)
        own, _ = first(lambda v, A=A: A @ v, lambda v, M=M: M * v, A.zeros(), A.vector(b), dot)
        np.testing.assert_allclose(own.to_array(), x, rtol=1e-10)


@pytest.mark.parametrize("dtype", TYPES)
def test_conjugate_gradients_as_scipys(dtype):
    linalg = pytest.importorskip("scipy.sparse.linalg")
    a = sparse.poisson((9, 8, 7), dtype=dtype)
    b = np.random.default_rng(5).standard_normal(a.shape[0]).astype(dtype)
    rtol = 1e-4 if dtype in (np.float32, np.complex64) else 1e-10

    def solve(A):
        return conjugate_gradients(A, A.vector(b), A.vector(1 / a.diagonal()), rtol)

    x = on_all_devices(a, solve)
    assert x.dtype == dtype
    expected = linalg.spsolve(a.astype(np.complex128).tocsc(), b)
    assert np.linalg.norm(x - expected) <= 1e2 * rtol * np.linalg.norm(expected)


def test_chebyshev_as_scipys():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    a = sparse.poisson((9, 8, 7))
    b = np.random.default_rng(6).standard_normal(a.shape[0])
    low = float(linalg.eigsh(a, 1, sigma=0, return_eigenvectors=False)[0])
    x = on_all_devices(a, lambda A: chebyshev(A, A.vector(b), low, 12.0, 150))
    np.testing.assert_allclose(x, linalg.spsolve(a.tocsc(), b), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
def test_cores_give_the_same_bits(devices):
    a = sparse.poisson((30, 20))

    def solve(devices):
        A = sparse.Matrix(a, devices=devices)
        b = A.vector(np.ones(600))
        return conjugate_gradients(A, b, A.vector(1 / a.diagonal()), 1e-10).to_array()

    assert solve(devices).tobytes() == solve("emulated:3").tobytes()


def test_vectors_are_values(matrix):
    ones = np.ones(132)
    x = matrix.vector(ones)
    y, same = x.copy(), x
    later = 2 * x + y
    x += x
    x -= -x
    assert same is x
    assert np.array_equal(x.to_array(), 4 * ones)
    assert np.array_equal(y.to_array(), ones)
    assert np.array_equal(later.to_array(), 3 * ones)
    x *= 0.5
    x /= dot(y, y) / 132
    assert np.array_equal((x * x - y + x + x + x).to_array(), 9 * ones)
    ones[:] = 7
    assert np.array_equal(y.to_array(), np.ones(132))


def test_scalars(matrix):
    x = matrix.vector(np.ones(132))
    n = dot(x, x)
    assert isinstance(n / 2 > 65, sparse.Scalar)
    assert float(n) == 132 and complex(n) == 132 and float(sparse.Scalar(2) * 3) == 6
    assert float(1 - (-n) * 2 + 3) == 268 and float(132 / n - 0) == 1
    assert float((n + 12).sqrt()) == 12 and float(abs(-n)) == 132 and float(n.real) == 132
    assert n > 131 and n >= 132 and n <= 132 and not n < 132
    assert float(norm(x) * norm(x)) == pytest.approx(132)


def test_complex_scalars():
    A = sparse.Matrix(np.diag([1, 2j, 3]), devices="emulated:2")
    x = A.vector([1, 1j, 2])
    assert complex(dot(x, A @ x)) == np.vdot([1, 1j, 2], [1, -2, 6])
    assert float(norm(1j * x)) == pytest.approx(np.sqrt(6))
    with pytest.raises(InvalidArgument, match="expected a real one"):
        float(dot(x, x))
    with pytest.raises(InvalidArgument, match="no order"):
        assert dot(x, x) < 1


def test_what_doesnt_belong_together_is_named(matrix):
    other = sparse.Matrix(np.eye(5), devices="emulated:1")
    x, y = matrix.zeros(), other.zeros()
    with pytest.raises(InvalidArgument, match="132 and 5 rows belong to two matrices on two engi"):
        x += y
    with pytest.raises(InvalidArgument, match="5 rows of another matrix"):
        matrix @ y
    with pytest.raises(InvalidArgument, match="a scalar of another matrix"):
        dot(y, y) * x
    with pytest.raises(InvalidArgument, match="complex scalar"):
        1j * x
    with pytest.raises(InvalidArgument, match=r"shape \(131,\); expected \(132,\)"):
        matrix.vector(np.ones(131))
    with pytest.raises(InvalidType, match="expected a Vector"):
        matrix @ np.ones(132)
    with pytest.raises(InvalidType, match="dtype=complex"):
        matrix.vector(1j * np.ones(132))
    with pytest.raises(InvalidType, match="expected vectors of a Matrix"):
        dot(x, np.ones(132))
    for wrong in (lambda: x + 1, lambda: x * "a", lambda: np.ones(132) * x, lambda: x / x):
        with pytest.raises(TypeError):
            wrong()
    assert float(dot(x, x)) == 0


def test_source_of_rows():
    a = sparse.poisson((20, 10))
    A = sparse.Matrix(sparse.poisson_rows((20, 10)), devices="emulated:2", parts=3)
    x = np.random.default_rng(1).standard_normal(200)
    np.testing.assert_allclose((A @ A.vector(x)).to_array(), a @ x, rtol=1e-13, atol=1e-13)


def test_vectors_and_scalars_outlive_their_matrix():
    x = sparse.Matrix(sparse.poisson((40, 40)), devices="emulated:2").vector(np.ones(1600))
    n = dot(x, x)
    assert np.array_equal((x + x).to_array(), 2 * np.ones(1600))
    del x
    assert float(n / 2) == 800


def test_a_closed_engine_takes_no_more():
    engine = quadriga.Engine("emulated:1")
    A = sparse.Matrix(np.eye(3), engine=engine)
    x = A.vector([1, 2, 3])
    engine.close()
    with pytest.raises(InvalidArgument, match="closed"):
        sparse.Matrix(np.eye(3), engine=engine)
    del A, x


def test_interrupt_while_a_scalar_is_read():
    a = sparse.poisson((60, 60, 60), 27)
    with quadriga.Engine("cpu:1") as engine:
        A = sparse.Matrix(a, engine=engine)
        x = A.vector(np.ones(a.shape[0]))
        sent = []

        def interrupt():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.3, interrupt)
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                for _ in range(50):
                    x = A @ x / 100
                float(norm(x))
        assert time.monotonic() - sent[0] < 120
        timer.join()
        again = sparse.Matrix(a, engine=engine)
        assert float(norm(again.vector(np.ones(a.shape[0])))) == pytest.approx(60**1.5)


def test_scalars_are_compared_when_they_are_read():
    A = sparse.Matrix(np.eye(3), devices="emulated:2,memory=1MiB")
    nothing, three = dot(A.zeros(), A.zeros()), dot(A.vector(np.ones(3)), A.vector(np.ones(3)))
    assert nothing == 0 and three == 3 and three != nothing
    with pytest.raises(InvalidType, match="compare"):
        assert A.zeros() == A.zeros()


def test_quotients_are_in_range_where_their_operands_are():
    A = sparse.Matrix(np.eye(4), dtype=complex, devices="cpu:2")
    for size in (1e-82, 1e78):
        q = A.vector(np.full(4, size))
        assert complex(dot(q, q) / dot(q, q)) == 1
    assert complex(sparse.Scalar(1 + 2j) / sparse.Scalar(3 - 4j)) == pytest.approx(-0.2 + 0.4j)
    x = sparse.Matrix(np.eye(2), devices="cpu:1").vector(np.ones(2))
    assert np.isinf((x * np.inf * dot(x, x)).to_array()).all()


def test_copies_and_updates_by_elements():
    A = sparse.Matrix(np.eye(3), devices="cpu:2")
    x = A.vector([1.0, 2, 3])
    same, deep = copy.copy(x), copy.deepcopy(x)
    kept = x
    x *= A.vector([2.0, 2, 2])
    x /= 4
    assert kept is x and (x.to_array() == [0.5, 1, 1.5]).all()
    assert (same.to_array() == [1, 2, 3]).all() and (deep.to_array() == [1, 2, 3]).all()


def test_without_computing_there_is_no_content():
    with quadriga.Engine("emulated:2", virtual_clock=True, compute=False) as engine:
        A = sparse.Matrix(np.eye(3), engine=engine)
        x = A.zeros()
        with pytest.raises(InvalidArgument, match="knows no vectors"):
            x.to_array()


# The last of a matrix would wait for its tasks, which a body may not.
@pytest.mark.parametrize("devices", ["cpu:1", "emulated:1,memory=8MiB"])
def test_a_body_may_drop_the_last_vector(devices):
    with quadriga.Engine(devices) as engine:
        A = sparse.Matrix(sparse.poisson((20, 20)), engine=engine)
        held = [A, A.vector(np.ones(400))]
        del A
        for _ in range(300):
            held[1] = held[0] @ held[1] / 8

        @quadriga.codelet(access=["update"])
        def drop(z):
            held.clear()
            z += 1

        z = np.zeros(1)
        engine.submit(drop, engine.data(z).update())
        engine.wait()
    assert z[0] == 1
