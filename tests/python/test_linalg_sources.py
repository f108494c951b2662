# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_linalg_sources.py: matrices that are computed where they are needed.
import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.linalg
from scipy.spatial.distance import cdist

import quadriga
from quadriga import linalg

ENGINES = ["cpu:2", "emulated:2,memory=512KiB"]


@pytest.fixture(params=ENGINES, autouse=True)
def engine(request):
    with quadriga.Engine(request.param) as made:
        yield made


def hilbert_like(i, j):
    return 1.0 / (1 + abs(i - j)) + 3.0 * (i == j)


def dense(function, n, m=None):
    return np.asarray(function(*np.ogrid[:n, : m or n]), float)


class Stored:
    """What a user may write: nothing of quadriga's."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.asked = []

    def read(self, rows, cols, out):
        self.asked.append((rows, cols))
        out[...] = self.array[rows, cols]


def test_functions_of_indices():
    n = 150
    a = linalg.from_function(n, hilbert_like, hermitian=True)
    full = dense(hilbert_like, n)
    np.testing.assert_array_equal(a[:, :], full)
    np.testing.assert_array_equal(a[3:50, 100:], full[3:50, 100:])
    b = np.arange(n * 2.0).reshape(n, 2)
    x = linalg.solve(a, b, assume_a="pos", tile=40)
    np.testing.assert_allclose(full @ x, b, rtol=1e-10, atol=1e-9)
    for lower in (True, False):
        expected = scipy.linalg.cholesky(full, lower)
        np.testing.assert_allclose(linalg.cholesky(a, lower, tile=40), expected, atol=1e-12)
    assert np.allclose(linalg.solve(a, b, tile=40), x)  # hermitian by its own word


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_objects_with_read_in_products(dtype):
    generator = np.random.default_rng(0)
    a = Stored(generator.standard_normal((70, 90)).astype(dtype))
    b = generator.standard_normal((90, 50)).astype(dtype)
    found = linalg.matmul(a, b, tile=32)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, a.array @ b, rtol=1e-3 if dtype in "fF" else 1e-11)
    assert all(rows.stop - rows.start <= 70 for rows, _ in a.asked)
    transposed = linalg.matmul(Stored(b), a, trans_a="T", trans_b="T", tile=32)
    np.testing.assert_allclose(transposed, found.T, rtol=1e-3 if dtype in "fF" else 1e-11)


def test_sources_are_promoted():
    a = linalg.from_function((4, 4), lambda i, j: (i == j) * 4, dtype=np.int64)
    assert linalg.matmul(a, np.ones(4)).dtype == float
    single = linalg.from_function(4, lambda i, j: (i == j) * 4.0, dtype="f", hermitian=True)
    assert linalg.cholesky(single).dtype == np.float32
    assert linalg.solve(single, np.ones(4)).dtype == float
    np.testing.assert_array_equal(linalg.solve(single, np.ones(4, complex)), np.full(4, 0.25))
    assert linalg.matmul(single, np.ones(4, "F")).dtype == np.complex64


def test_triangular_and_rank_updates_take_sources():
    n = 60
    full = dense(hilbert_like, n)
    a = linalg.from_function(n, hilbert_like)
    b = np.ones(n)
    np.testing.assert_allclose(
        linalg.solve_triangular(a, b, lower=True, tile=16),
        scipy.linalg.solve_triangular(full, b, lower=True),
    )
    wide = linalg.from_function((30, 40), lambda i, j: np.sin(i * 3.0 + j))
    product = dense(lambda i, j: np.sin(i * 3.0 + j), 30, 40)
    np.testing.assert_allclose(
        linalg.syrk(1.0, wide, tile=16), np.triu(product @ product.T), atol=1e-12
    )


def test_what_a_source_raises_comes_back():
    class Planned(Exception):
        pass

    def unlucky(i, j):
        raise Planned(i.shape)

    a = linalg.from_function(50, unlucky, hermitian=True)
    for work in (
        lambda: linalg.cholesky(a, tile=16),
        lambda: linalg.cho_factor(a, tile=16),
        lambda: linalg.matmul(a, np.ones(50), tile=16),
    ):
        with pytest.raises(Planned):
            work()
    np.testing.assert_array_equal(linalg.cholesky(np.eye(3)), np.eye(3))


def test_wrong_shapes_of_values_are_told():
    a = linalg.from_function(50, lambda i, j: np.zeros((3, 3)), hermitian=True)
    with pytest.raises(ValueError, match="broadcast"):
        linalg.cholesky(a, tile=16)
    for shape, hermitian in (
        ((2, 3), True), ((-1, 2), False), ((2, 3, 4), False), ((2.0, 2.5), False), (None, False)
    ):  # fmt: skip
        with pytest.raises(quadriga.InvalidArgument, match="shape|sizes"):
            linalg.from_function(shape, hilbert_like, hermitian=hermitian)


@pytest.mark.parametrize("value", [None, 1j, "x"])
def test_values_that_the_matrix_can_not_hold_are_told(value):
    a = linalg.from_function(50, lambda i, j: np.full((i.size, j.size), value))
    with pytest.raises(quadriga.InvalidType, match="the matrix is float64"):
        linalg.matmul(a, np.ones(50), tile=16)


def test_what_is_no_source():
    with pytest.raises(quadriga.InvalidType, match="callable"):
        linalg.from_function(3, 7)
    a = linalg.rbf(np.zeros((3, 1)))
    for key in ("x", (0, 1, 2), [0, 1], (None, 0), 1.5):
        with pytest.raises(quadriga.InvalidArgument, match="two numbers or slices"):
            a[key]
    wrong = Stored(np.zeros((2, 2)))
    wrong.shape = 5
    with pytest.raises(quadriga.InvalidArgument, match="shape 5"):
        linalg.matmul(wrong, np.ones(2))


FORMULAS = {
    "rbf": lambda r: np.exp(-(r**2) / 2),
    "matern12": lambda r: np.exp(-r),
    "matern32": lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    "matern52": lambda r: (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r),
}


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize("scale", [0.7, (0.5, 2.0)])
def test_covariances(kind, scale):
    generator = np.random.default_rng(1)
    points, others = generator.random((80, 2)), generator.random((30, 2))
    options = {"length_scale": scale, "variance": 2.0}
    made = getattr(linalg, kind)
    expected = 2 * FORMULAS[kind](cdist(points / scale, points / scale))
    own = made(points, nugget=0.1, **options)
    np.testing.assert_allclose(own[:, :], expected + 0.1 * np.eye(80), rtol=1e-13)
    np.testing.assert_array_equal(
        linalg.covariance(kind, points, nugget=0.1, **options)[:, :], own[:, :]
    )
    cross = made(points, others, **options)
    assert cross.shape == (80, 30)
    np.testing.assert_allclose(
        cross[:, :], 2 * FORMULAS[kind](cdist(points / scale, others / scale)), rtol=1e-13
    )
    factor = linalg.cho_factor(own, tile=32)
    x = factor.solve(np.ones(80))
    np.testing.assert_allclose(own[:, :] @ x, np.ones(80), rtol=1e-9)
    np.testing.assert_allclose(linalg.matmul(cross, np.ones(30), tile=32), cross[:, :].sum(1))


def test_covariances_refuse_nonsense():
    points = np.zeros((3, 2))
    for options, match in (
        ({"length_scale": -1.0}, "length_scale"),
        ({"length_scale": (1.0, 1.0, 1.0)}, "length scales"),
        ({"variance": 0.0}, "variance"),
        ({"nugget": -1.0}, "nugget"),
        ({"dtype": "F"}, "float32 or float64"),
        ({"others": np.zeros((3, 4))}, "coordinates"),
    ):
        with pytest.raises(quadriga.InvalidArgument, match=match):
            linalg.rbf(points, **options)
    with pytest.raises(quadriga.InvalidArgument, match="coordinate 0 of point 0 is nan"):
        linalg.rbf([np.nan])
    with pytest.raises(quadriga.InvalidArgument, match="matern12"):
        linalg.covariance("linear", points)


def test_a_matrix_that_never_exists(tmp_path):
    n = 700
    points = np.random.default_rng(2).random((n, 2))
    a = linalg.matern32(points, nugget=0.01, length_scale=0.2)
    for options in ({}, {"spill": tmp_path / "spill"}):
        with quadriga.Engine("emulated:2,memory=600KB", **options) as engine:
            factor = linalg.cho_factor(a, tile=100)
            x = factor.solve(np.ones(n))
            assert engine.counters().spill_bytes > 0
            assert factor.held().bytes >= n * n * 4
        np.testing.assert_allclose(a[:, :] @ x, np.ones(n), rtol=1e-8)
    with (
        quadriga.Engine("emulated:2,memory=600KB", host_memory="1MB"),
        pytest.raises(quadriga.TooLarge, match="host_memory"),
    ):
        linalg.cho_factor(a, tile=100)


def test_a_source_that_failed_keeps_no_engine():
    """The engine holds its sources; what they raised leads back to it."""
    engine = quadriga.Engine("emulated:1,memory=1MiB")
    source = linalg.from_function(30, lambda i, j: 1 / 0, hermitian=True)
    with pytest.raises(ZeroDivisionError):
        linalg.cho_factor(source, engine=engine)
    held = weakref.ref(engine)
    del engine, source
    gc.collect()
    assert held() is None


class Keeping:
    """Keeps what it is to fill, as a whole, a part of it or in an exception."""

    shape = (200, 200)
    dtype = np.dtype(float)

    def __init__(self, keep, raises=False):
        self.kept = []
        self.keep = keep
        self.raises = raises

    def read(self, rows, cols, out):
        out[...] = 1
        self.kept.append(self.keep(out))
        if self.raises:
            raise ValueError("planned", out)


@pytest.mark.parametrize("keep", [lambda out: out, lambda out: out[1:, :3].T, lambda out: {1: out}])
@pytest.mark.parametrize("raises", [False, True])
def test_a_source_that_keeps_what_it_fills_is_refused(keep, raises):
    """Its memory goes back to the engine: later reads of it would end the process."""
    source = Keeping(keep, raises)
    with pytest.raises(quadriga.InvalidType, match=r"read\(\) of Keeping keeps .*: keep a copy"):
        linalg.matmul(source, np.eye(200))


def test_what_a_source_fills_may_be_copied_and_raised():
    source = Keeping(np.copy)
    found = linalg.matmul(source, np.eye(200))
    assert np.array_equal(found, np.ones((200, 200)))
    assert all(np.all(each == 1) for each in source.kept)
    with pytest.raises(ValueError, match="planned") as raised:
        linalg.matmul(Keeping(np.copy, raises=True), np.eye(200))
    assert np.all(raised.value.args[1] == 1)


class Returning:
    """Returns its block, as `__getitem__` would; one that returns `out` has filled it."""

    shape = (60, 50)
    dtype = np.dtype(float)
    array = np.arange(3000.0).reshape(shape)

    def __init__(self, fills=None):
        self.fills = fills

    def read(self, rows, cols, out):
        if self.fills is None:
            return self.array[rows, cols]
        out[...] = self.array[rows, cols]
        return self.fills(out)


class Derived(Returning, linalg.Source):
    def __init__(self):
        Returning.__init__(self)
        linalg.Source.__init__(self, self.shape, float, False)


@pytest.mark.parametrize("make", [Returning, Derived, lambda: Returning(lambda out: out.size)])
def test_a_source_that_returns_its_block_is_refused(make):
    """Its `out` would be taken as it was: wrong numbers."""
    match = r"read\(\) of \w+ returned a value of type .*: write the block into `out`"
    for product in (
        lambda: linalg.matmul(make(), np.eye(50), tile=16),
        lambda: linalg.matmul(make(), np.eye(60), trans_a="T", tile=16),
    ):
        with pytest.raises(quadriga.InvalidType, match=match):
            product()
    if make is Derived:
        for read in (
            lambda: make()[:, :],
            lambda: make().T[3:5],
            lambda: np.asarray(make().astype("f")),
        ):
            with pytest.raises(quadriga.InvalidType, match=match):
                read()


@pytest.mark.parametrize("fills", [lambda out: out, lambda out: out.T, lambda out: None])
def test_a_source_may_return_what_it_filled(fills):
    found = linalg.matmul(Returning(fills), np.eye(50), tile=16)
    assert np.array_equal(found, Returning.array)


@pytest.mark.parametrize("others", [None, [[0.5], [2.0]]])
def test_covariances_are_pickled(others):
    points = np.linspace(0, 1, 5)
    for dtype in ("f", "d"):
        a = linalg.matern32(
            points, others, length_scale=0.3, variance=2, nugget=0.1 * (others is None), dtype=dtype
        )
        back = pickle.loads(pickle.dumps(a))
        assert back.dtype == a.dtype
        assert back.hermitian == a.hermitian
        assert np.array_equal(back[:, :], a[:, :])
