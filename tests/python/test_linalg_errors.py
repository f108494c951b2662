# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_linalg_errors.py: bad input is a clear error, in SciPy's words where it has any.
import functools
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import quadriga
from quadriga import linalg
from quadriga.linalg import condition

SQUARE = [linalg.cholesky, linalg.cho_factor, lambda a: linalg.solve(a, np.ones(len(a)))]


def same_words(mine, theirs, kind=ValueError):
    """Both raise `kind`, and say the same."""
    with pytest.raises(kind) as expected:
        theirs()
    with pytest.raises(kind) as found:
        mine()
    assert str(found.value) == str(expected.value)
    assert isinstance(found.value, quadriga.Error)


def test_not_square():
    a = np.ones((2, 3))
    for name in ("cholesky", "cho_factor"):
        same_words(lambda n=name: getattr(linalg, n)(a), lambda n=name: getattr(scipy.linalg, n)(a))
    same_words(
        lambda: linalg.cho_solve((a, True), np.ones(2)),
        lambda: scipy.linalg.cho_solve((a, True), np.ones(2)),
    )
    with pytest.raises(ValueError, match="square"):
        linalg.solve(a, np.ones(2), assume_a="pos")
    same_words(
        lambda: linalg.solve_triangular(a, np.ones(2)),
        lambda: scipy.linalg.solve_triangular(a, np.ones(2)),
    )


@pytest.mark.parametrize("dimensions", [3, 4])
def test_too_many_dimensions(dimensions):
    a = np.ones([2] * dimensions)
    for function in (linalg.cholesky, linalg.cho_factor):
        with pytest.raises(ValueError, match=f"needs to be 2D but received a {dimensions}d-array"):
            function(a)
    for work in (
        lambda: linalg.solve(a, np.ones(2)),
        lambda: linalg.solve(np.eye(2), a),
        lambda: linalg.matmul(a, np.eye(2)),
        lambda: linalg.syrk(1.0, a),
        lambda: linalg.solve_triangular(np.eye(2), a),
        lambda: linalg.cho_factor(np.eye(2)).solve(a),
    ):
        with pytest.raises(quadriga.InvalidArgument):
            work()


def test_shapes_that_do_not_fit():
    same_words(
        lambda: linalg.cho_solve((np.eye(2), True), np.ones((3, 2))),
        lambda: scipy.linalg.cho_solve((np.eye(2), True), np.ones((3, 2))),
    )
    same_words(
        lambda: linalg.solve_triangular(np.eye(2), np.ones(3)),
        lambda: scipy.linalg.solve_triangular(np.eye(2), np.ones(3)),
    )
    same_words(lambda: linalg.matmul(np.ones((2, 3)), np.ones((2, 3))),
               lambda: np.matmul(np.ones((2, 3)), np.ones((2, 3))))  # fmt: skip
    same_words(lambda: linalg.matmul(3.0, np.ones(3)), lambda: np.matmul(3.0, np.ones(3)))
    with pytest.raises(quadriga.InvalidArgument, match="incompatible shapes"):
        linalg.solve(np.eye(2), np.ones(3), assume_a="pos")
    with pytest.raises(quadriga.InvalidArgument, match="incompatible dimensions"):
        linalg.cho_factor(np.eye(2)).solve(np.ones(3))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("minor", [1, 5, 40, 90])
@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=256KiB"])
def test_not_positive_definite_names_the_minor(minor, lower, devices):
    a = np.eye(90) * 4
    a[minor - 1, minor - 1] = -1
    before = a.copy()
    with quadriga.Engine(devices):
        for function in (linalg.cholesky, linalg.cho_factor):
            with pytest.raises(np.linalg.LinAlgError) as caught:
                function(a, lower, tile=32)
            with pytest.raises(np.linalg.LinAlgError) as expected:
                scipy.linalg.cholesky(a, lower)
            assert str(caught.value) == str(expected.value)
            assert isinstance(caught.value, quadriga.NotPositiveDefinite)
            assert caught.value.minor == minor
        with pytest.raises(np.linalg.LinAlgError):
            linalg.solve(a, np.ones(90), assume_a="pos", lower=lower, tile=32)
        np.testing.assert_array_equal(a, before)
        np.testing.assert_array_equal(linalg.cholesky(np.eye(4) * 4), np.eye(4) * 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(bad):
    a, b = np.eye(3), np.ones(3)
    wrong = a.copy()
    wrong[0, 2] = bad
    words = lambda f, g, *args: same_words(lambda: f(*args), lambda: g(*args))  # noqa: E731
    words(linalg.cholesky, scipy.linalg.cholesky, wrong)
    words(linalg.cho_factor, scipy.linalg.cho_factor, wrong)
    words(linalg.cho_solve, scipy.linalg.cho_solve, (wrong, True), b)
    words(linalg.solve_triangular, scipy.linalg.solve_triangular, wrong, b)
    words(linalg.solve, scipy.linalg.solve, wrong, b)
    words(linalg.solve, scipy.linalg.solve, a, b * bad)
    words(linalg.cho_solve, scipy.linalg.cho_solve, (a, True), b * bad)
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.cho_factor(a).solve(b * bad)
    big = np.ones((1200, 1200))
    big[1100, 3] = bad
    with pytest.raises(ValueError, match="infs or NaNs"):
        linalg.cholesky(big)
    # The other triangle isn't read if nobody asks for the check.
    found = linalg.cholesky(wrong, lower=True, check_finite=False)
    np.testing.assert_array_equal(found, a)


def test_not_symmetric_on_request():
    a = np.eye(1500) * 3
    a[1400, 7] = 1e-3
    linalg.cho_factor(a)
    for function in (linalg.cholesky, linalg.cho_factor):
        with pytest.raises(quadriga.InvalidArgument, match=r"symmetric.*\(1400, 7\).*\(7, 1400\)"):
            function(a, check_symmetric=True)
        function(a, check_symmetric=1e-2)
    with pytest.raises(quadriga.InvalidArgument, match="symmetric"):
        linalg.solve(a, np.ones(1500))
    with pytest.raises(quadriga.InvalidArgument, match="hermitian"):
        linalg.cholesky(np.array([[2, 1j], [1j, 2]]), check_symmetric=True)
    rounded = np.array([[2, 0.1 + 0.2], [0.3, 2]])
    linalg.cholesky(rounded, check_symmetric=True)


@pytest.mark.parametrize("dtype", ["e", "g", "G", "O", "U3", "M8[s]"])
def test_types_that_are_not_accepted(dtype):
    a = np.zeros((2, 2), dtype)
    for work in (
        lambda: linalg.cholesky(a),
        lambda: linalg.cho_factor(a),
        lambda: linalg.solve(np.eye(2), a),
        lambda: linalg.cho_solve((a, True), np.ones(2)),
        lambda: linalg.matmul(a, a),
        lambda: linalg.herk(1, a),
        lambda: linalg.solve_triangular(a, np.ones(2)),
        lambda: linalg.cholesky(linalg.from_function(3, lambda i, j: i, dtype=dtype)),
    ):
        with pytest.raises(
            quadriga.InvalidType, match="float32, float64, complex64, complex128"
        ) as caught:
            work()
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, ValueError)


def test_masked_and_sparse():
    with pytest.raises(ValueError, match="masked"):
        linalg.cholesky(np.ma.array(np.eye(3)))
    with pytest.raises(ValueError, match="sparse"):
        linalg.cholesky(scipy.sparse.eye_array(3).tocsr())


def test_outputs_whose_elements_share_a_place():
    memory = np.zeros(40)

    def out(strides):
        return np.lib.stride_tricks.as_strided(memory, (3, 3), [8 * each for each in strides])

    a = np.arange(9.0).reshape(3, 3)
    for strides in ((2, 1), (1, 2), (0, 1), (4, 2)):
        with pytest.raises(quadriga.InvalidArgument, match="several elements to one address"):
            linalg.matmul(a, np.eye(3), out=out(strides), devices="cpu:1")
    for strides in ((3, 1), (3, 4), (4, 3), (5, 2), (9, 3)):
        kept = linalg.matmul(a, np.eye(3), out=out(strides), devices="cpu:1")
        np.testing.assert_array_equal(kept, a)


def test_complex_factors_of_real_matrices():
    a = np.eye(3)
    for arguments in ((1j, a), (1, a, 1j, a.copy())):
        with pytest.raises(quadriga.InvalidArgument, match="syrk: .*1j; expected a real number"):
            linalg.syrk(*arguments)
    assert linalg.syrk(1j, a.astype(complex))[0, 0] == 1j


def test_sizes_of_estimates():
    for size in (1.5, "a", -1, 10**30):
        with pytest.raises(quadriga.InvalidArgument, match="a size .*expected a whole number"):
            linalg.estimate("cholesky", size, devices="cpu:1")
    with pytest.raises(quadriga.TooLarge, match="up to 1 EiB"):
        linalg.estimate("cholesky", 10**12, tile=1, devices="cpu:1")
    assert linalg.estimate("cholesky", 100, dtype=int, devices="cpu:1").tasks > 0


@pytest.mark.parametrize("lower", ["U", "L", 2, None, [True], np.array([0, 0]), 1.0])
def test_a_triangle_is_no_letter(lower):
    """The letters of LAPACK's, all true, would choose the lower one."""
    a, b = 4 * np.eye(3) + 1, np.ones(3)
    calls = [
        lambda: linalg.cholesky(a, lower=lower),
        lambda: linalg.cho_factor(a, lower=lower),
        lambda: linalg.cho_solve((a, lower), b),
        lambda: linalg.solve(a, b, lower=lower, assume_a="pos"),
        lambda: linalg.solve_triangular(a, b, lower=lower),
        lambda: linalg.syrk(1.0, a, lower=lower),
        lambda: linalg.herk(1.0, a, lower=lower),
    ]
    for call in calls:
        with pytest.raises(quadriga.InvalidType, match="^lower is .*; expected True or False"):
            call()
    with pytest.raises(quadriga.InvalidType, match="^unit_diagonal is .*; expected True or False"):
        linalg.solve_triangular(a, b, unit_diagonal=lower)


def test_numbers_that_are_true_or_false():
    a = 4 * np.eye(3) + 1
    for lower in (1, True, np.True_, np.int64(1)):
        np.testing.assert_array_equal(linalg.cholesky(a, lower=lower), linalg.cholesky(a, True))
    for lower in (0, False, np.False_, np.int64(0)):
        np.testing.assert_array_equal(linalg.cholesky(a, lower=lower), linalg.cholesky(a))


@pytest.mark.parametrize("given", [np.eye(3), np.eye(2)[:1], None, 3])
def test_a_factor_that_is_none(given):
    with pytest.raises(quadriga.InvalidType, match="expected a Factor, or .c, lower."):
        linalg.cho_solve(given, np.ones(3))


def test_overlapping_operands():
    a = np.eye(40)
    with pytest.raises(quadriga.InvalidArgument, match="^a shares memory with out, which"):
        linalg.matmul(a, np.ones((40, 40)), out=a)
    with pytest.raises(quadriga.InvalidArgument, match="^b shares memory with out, which"):
        linalg.matmul(np.ones((40, 40)), a, out=a)
    with pytest.raises(quadriga.InvalidArgument, match="shares memory"):
        linalg.matmul(a[:20, :20], np.ones((20, 20)), out=a[10:30, 10:30])
    room = np.eye(41)
    with pytest.raises(quadriga.InvalidArgument, match="shares memory"):
        linalg.cholesky(room[:40, :40], out=room[1:, 1:])
    # The same memory as it is, or merely between each other: fine.
    both = np.eye(40) * 4
    assert linalg.cholesky(both, out=both) is both
    np.testing.assert_array_equal(both, np.eye(40) * 2)
    wide = np.zeros((10, 20))
    linalg.matmul(np.eye(10), np.ones((10, 10)), out=wide[:, ::2])
    assert wide.sum() == 100
    # x in the memory of a: solved with a copy.
    b = np.eye(3)
    np.testing.assert_array_equal(linalg.solve(b, b, overwrite_b=True), np.eye(3))


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=256KiB"])
def test_right_hand_sides_in_the_memory_of_what_is_overwritten(devices):
    a = np.eye(60) * 60 + np.add.outer(np.arange(60.0), np.arange(60.0)) / 60
    with quadriga.Engine(devices):
        matrix = a.copy()
        x = linalg.solve(matrix, matrix[:, 3], False, True, True, assume_a="pos", tile=16)
        np.testing.assert_allclose(x, np.eye(60)[3], atol=1e-12)
        expected = np.linalg.solve(a, np.ones(60))
        factor = linalg.cho_factor(a.copy(), overwrite_a=True, tile=16)
        for memory, solve in (
            (factor.unpack(), factor.solve),
            ((c := factor.unpack(clean=True)), lambda *rest: linalg.cho_solve((c, False), *rest)),
        ):
            right = memory[:, 2]
            wanted = np.linalg.solve(a, right)
            np.testing.assert_allclose(solve(right, True), wanted, atol=1e-12)
            np.testing.assert_allclose(solve(np.ones(60)), expected)


def test_outputs_that_can_not_be_written():
    frozen = np.zeros((2, 2))
    frozen.flags.writeable = False
    for out, match in (
        (frozen, "read-only"),
        (np.zeros((2, 3)), "shape"),
        (np.zeros((2, 2), "f"), "float64"),
        ([[0, 0], [0, 0]], "list"),
        (np.zeros((2, 2), ">f8"), ">f8; expected"),
    ):
        with pytest.raises(quadriga.InvalidArgument, match=match):
            linalg.matmul(np.eye(2), np.eye(2), out=out)
    with pytest.raises(quadriga.InvalidArgument, match="beta"):
        linalg.matmul(np.eye(2), np.eye(2), beta=1)
    for out in (frozen, np.zeros((2, 2), "f"), np.zeros((3, 3)), [[0.0, 0.0], [0.0, 0.0]], 5):
        with pytest.raises(quadriga.InvalidArgument, match="out is"):
            linalg.cholesky(np.eye(2), out=out)


def test_singular_triangles():
    a = np.array([[1.0, 0, 0], [1, 0, 0], [1, 1, 1]])
    same_words(
        lambda: linalg.solve_triangular(a, np.ones(3), lower=True),
        lambda: scipy.linalg.solve_triangular(a, np.ones(3), lower=True),
        np.linalg.LinAlgError,
    )
    linalg.solve_triangular(a, np.ones(3), lower=True, unit_diagonal=True)


def test_structures_that_are_not_available():
    for kind in ("gen", "sym", "banded"):
        with pytest.raises(quadriga.Unavailable, match="pos"):
            linalg.solve(np.eye(2), np.ones(2), assume_a=kind)
    same_words(lambda: linalg.solve(np.eye(2), np.ones(2), assume_a="nice"),
               lambda: scipy.linalg.solve(np.eye(2), np.ones(2), assume_a="nice"))  # fmt: skip
    with pytest.raises(NotImplementedError):
        linalg.solve(np.eye(2) * 1j, np.ones(2), assume_a="pos", transposed=True)


def test_wrong_options():
    a = np.eye(3)
    for work, match in (
        (lambda: linalg.cholesky(a, tile=0), "tile"),
        (lambda: linalg.cholesky(a, tile=-3), "tile"),
        (lambda: linalg.cholesky(a, tile=2.5), "tile is 2.5"),
        (lambda: linalg.cholesky(a, tile="64"), "tile is '64'"),
        (lambda: linalg.cholesky(a, tile=2**70), "tile"),
        (lambda: linalg.cholesky(a, devices=5), "devices is 5"),
        (lambda: linalg.cholesky(a, engine="cpu:1"), "engine is 'cpu:1'"),
        (lambda: linalg.cholesky(a, check_symmetric=-1), "check_symmetric"),
        (lambda: linalg.cholesky(a, devices="toaster"), "toaster"),
        (lambda: linalg.solve_triangular(a, a, trans="Q"), "trans"),
        (lambda: linalg.solve_triangular(a, a, trans=3), "trans"),
        (lambda: linalg.matmul(a, a, trans_b=7), "trans_b"),
        (lambda: linalg.herk(1j, a), "alpha"),
        (lambda: linalg.herk(1, a, 1j, a), "beta"),
        (lambda: linalg.syrk(1, a * 1j, trans=2), "herk"),
        (lambda: linalg.syrk(1, a, 1, np.eye(4)), "shape"),
    ):
        with pytest.raises(quadriga.InvalidArgument, match=match):
            work()


def test_tiles_that_fit_no_device():
    with (
        quadriga.Engine("emulated:2,memory=64KiB"),
        pytest.raises(quadriga.TooLarge, match=r"64 KiB") as caught,
    ):
        linalg.matmul(np.ones((300, 300)), np.ones((300, 300)), tile=300)
    assert isinstance(caught.value, MemoryError)


class TestIllConditioned:
    """SciPy warns by an estimate of the condition; so does this where the solution is large."""

    @pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
    @pytest.mark.parametrize("lower", [False, True])
    @pytest.mark.parametrize("n", [11, 12])
    def test_hilberts_matrix(self, n, lower, devices):
        """Of which order 12 is singular to working precision; the other triangle isn't read."""
        a = scipy.linalg.hilbert(n)
        a[np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)] = 1e30
        for solve in (scipy.linalg.solve, functools.partial(linalg.solve, devices=devices)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                solve(a, np.ones(n), lower=lower, assume_a="pos")
            assert len(caught) == (n == 12), solve

    @pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
    @pytest.mark.parametrize("n", [1, 2, 3, 40, 150])
    def test_the_estimate_of_the_inverse(self, n, dtype):
        """At most its 1-norm, and not far below it; of either triangle the matrix's norm."""
        random = np.random.default_rng(n)
        a = random.standard_normal((n, n)) + 1j * random.standard_normal((n, n))
        a = (a if dtype[0] == "c" else a.real).astype(dtype)
        a = a @ a.conj().T + 0.1 * np.eye(n, dtype=dtype)
        inverse = np.linalg.inv(a.astype("c16"))
        calls = []

        def solve(x):
            calls.append(x)
            x[:] = (inverse @ x).astype(dtype) if dtype[0] == "c" else (inverse @ x).real

        found = condition.inverse_norm(solve, n, np.dtype(dtype))
        norm = np.linalg.norm(inverse, 1)
        assert 0.3 * norm <= found <= (1 + 1e-4) * norm
        assert len(calls) <= 12
        nans = np.full((n, n), np.nan)
        for lower in (True, False):
            half = np.tril(a) + np.triu(nans, 1) if lower else np.triu(a) + np.tril(nans, -1)
            assert np.isclose(condition.one_norm(half, lower), np.linalg.norm(a, 1), rtol=1e-5)

    @pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, lambda a: a[::-1, ::-1]])
    @pytest.mark.parametrize(("kind", "small"), [("f8", 1e-17), ("f4", 1e-9), ("c16", 1e-17)])
    def test_a_warning_where_scipy_warns(self, kind, small, layout):
        for b in (np.ones(3, kind), np.ones((3, 100), kind)):
            a = layout(np.diag([1, small, 1]).astype(kind))
            if kind == "f8":
                with pytest.warns(scipy.linalg.LinAlgWarning, match="ill-conditioned"):
                    scipy.linalg.solve(a, b, assume_a="pos")
            with pytest.warns(linalg.LinAlgWarning, match="ill-conditioned.*at least [0-9]e"):
                linalg.solve(a, b, assume_a="pos", overwrite_a=True, overwrite_b=True)

    def test_it_is_caught_as_scipys_is(self):
        assert issubclass(linalg.LinAlgWarning, RuntimeWarning)
        assert linalg.LinAlgError is np.linalg.LinAlgError

    @pytest.mark.filterwarnings("error")
    def test_none_for_others(self):
        linalg.solve(np.diag([1e-200, 1.0001e-200]), [1.0, 1.0], assume_a="pos")
        linalg.solve(np.diag([1.0, 1e-8]), [1.0, 1.0], assume_a="pos")
        linalg.solve(np.eye(3), np.zeros((3, 2)), assume_a="pos")
        linalg.solve(np.eye(3), np.zeros((3, 0)), assume_a="pos")
