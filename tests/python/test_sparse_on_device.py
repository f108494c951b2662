# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_on_device.py: cg of operators on arrays of a device. Where no library of
# such arrays is installed, arrays that refuse to become NumPy's stand in.
import numpy as np
import pytest

import quadriga
from quadriga import sparse
from quadriga.errors import LinAlgWarning
from quadriga.sparse import on_device


class Array:
    """Arithmetic as CuPy's and PyTorch's arrays have; only single elements go to the host."""

    __cuda_array_interface__ = {"version": 3}
    fetched = 0

    def __init__(self, content):
        self._content = np.asarray(content)
        self.shape, self.dtype = self._content.shape, self._content.dtype

    def __array__(self, *arguments, **options):
        pytest.fail("an array was copied to the host")

    def _with(self, other, operation):
        return Array(operation(self._content, getattr(other, "_content", other)))

    def __add__(self, other):
        return self._with(other, np.add)

    def __sub__(self, other):
        return self._with(other, np.subtract)

    def __mul__(self, other):
        return self._with(other, np.multiply)

    def __truediv__(self, other):
        return self._with(other, np.divide)

    def conj(self):
        return Array(self._content.conj())

    def sum(self):
        return Array(self._content.sum())

    def item(self):
        Array.fetched += 1
        return self._content.item()


def system(dtype=float):
    a = sparse.poisson((20, 15), dtype=dtype)
    b = np.random.default_rng(1).standard_normal(300).astype(dtype)
    if np.dtype(dtype).kind == "c":
        b = b * (1 + 2j)
    return a, b, lambda v: Array(a @ v._content)


class Operator:
    """As CuPy's LinearOperator."""

    def __init__(self, call):
        self.matvec = call


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("wrap", [lambda call: call, Operator])
def test_vectors_stay_on_the_device(wrap, dtype):
    a, b, call = system(dtype)
    seen = []
    Array.fetched = 0
    x, info = sparse.cg(wrap(call), Array(b), rtol=1e-10, callback=seen.append)
    assert info == 0 and isinstance(x, Array) and seen[-1]._content is x._content
    assert np.linalg.norm(b - a @ x._content) <= 1e-10 * np.linalg.norm(b)
    assert Array.fetched <= 3 * len(seen) + 8, "three numbers an iteration"


@pytest.mark.parametrize("m", ["function", "diagonal"])
def test_preconditioners(m):
    a, b, call = system()
    scale = np.linspace(1, 1e4, 300)
    scaled = lambda v: Array(scale * (a @ (scale * v._content)))  # noqa: E731
    inverse = Array(1 / (scale**2 * a.diagonal()))
    given = inverse if m == "diagonal" else lambda r: inverse * r
    plain, with_m = [], []
    x, info = sparse.cg(scaled, Array(b), M=given, rtol=1e-8, callback=with_m.append)
    sparse.cg(scaled, Array(b), rtol=1e-8, maxiter=500, callback=plain.append)
    assert info == 0 and len(with_m) < len(plain) / 2
    assert np.linalg.norm(b - scale * (a @ (scale * x._content))) <= 1e-8 * np.linalg.norm(b)


def test_a_start_and_a_limit():
    a, b, call = system()
    x, info = sparse.cg(call, Array(b), maxiter=3)
    assert info == 3
    start = Array(x._content.copy())
    better, _ = sparse.cg(call, Array(b), start, maxiter=5)
    assert (start._content == x._content).all(), "x0 stays"
    norms = [np.linalg.norm(b - a @ each._content) for each in (x, better)]
    assert norms[1] < norms[0]
    assert sparse.cg(call, Array(b), better, rtol=1.0)[1] == 0
    assert sparse.cg(call, Array(b * 0))[1] == 0


@pytest.mark.parametrize(("call", "m", "said"), [
    (lambda v: v * -1.0, None, "A isn't positive definite"),
    (lambda v: v * np.nan, None, "infinities or NaNs"),
    (lambda v: v * 2.0, lambda r: r * -1.0, "M isn't positive definite"),
])  # fmt: skip
def test_breakdowns_are_told(call, m, said):
    _, b, _ = system()
    with pytest.warns(LinAlgWarning, match=said) as caught:
        assert sparse.cg(call, Array(b), M=m)[1] == -1
    assert caught[0].filename == __file__


def test_a_recurrence_that_is_wrong_isnt_believed():
    _, b, call = system()
    count = [0]

    def drifting(v):
        count[0] += 1
        return call(v) * (1 + 1e-3 * np.sin(count[0]))

    x, info = sparse.cg(drifting, Array(b), rtol=1e-8)
    assert info > 0


@pytest.mark.parametrize(("arguments", "options", "said"), [
    ((lambda v: v, Array(np.ones((4, 2)))), {}, r"b has shape \(4, 2\)"),
    ((lambda v: np.ones(4), Array(np.ones(4))), {}, r"A returned a ndarray of shape \(4,\)"),
    ((lambda v: Array(np.ones(3)), Array(np.ones(4))), {}, r"A returned a Array of shape \(3,\)"),
    ((lambda v: v, Array(np.ones(4)), np.ones(4)), {}, r"x0 is no array of shape \(4,\) on a dev"),
    ((lambda v: v, Array(np.ones(4))), {"M": "jacobi"}, "M is 'jacobi', and b is an array on a d"),
    ((lambda v: v, Array(np.ones(4))), {"devices": "cpu:1"}, "devices is 'cpu:1'"),
    ((lambda v: v, Array(np.ones(4))), {"precision": "mixed"}, "precision is 'mixed'"),
])  # fmt: skip
def test_what_cant_be_is_named(arguments, options, said):
    with pytest.raises(quadriga.InvalidArgument, match=said):
        sparse.cg(*arguments, **options)


def test_arrays_of_the_host_are_none_of_a_device():
    assert not on_device.is_on_device(np.ones(3)) and on_device.is_on_device(Array(np.ones(3)))
