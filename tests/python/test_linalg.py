# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_linalg.py: results of quadriga.linalg beside SciPy's and NumPy's.
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import blas

import quadriga
from quadriga import linalg

ENGINES = {name: quadriga.Engine(name) for name in ("cpu:2", "emulated:3,memory=256KiB")}
TYPES = "fdFD"
ORDERS = ("C", "F", "reversed", "strided", "transposed", "read-only", "unaligned")

engines = st.sampled_from(sorted(ENGINES)).map(ENGINES.get)
types = st.sampled_from(TYPES)
orders = st.sampled_from(ORDERS)
sizes = st.one_of(st.integers(0, 4), st.integers(5, 90))
tiles = st.sampled_from([None, 5, 7, 32, 33])
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=60, deadline=None)


def laid_out(array, order):
    """The same elements, lying in memory in another way."""
    if order == "F":
        return np.asfortranarray(array)
    if order == "reversed":
        return array[::-1, ::-1].copy()[::-1, ::-1] if array.ndim == 2 else array[::-1].copy()[::-1]
    if order == "strided":
        wide = np.zeros([3 * size for size in array.shape], array.dtype)
        wide[tuple(slice(None, None, 3) for _ in array.shape)] = array
        return wide[tuple(slice(None, None, 3) for _ in array.shape)]
    if order == "transposed":
        return array.T.copy().T
    if order == "unaligned":
        room = np.zeros(array.nbytes + 1, np.uint8)[1:]
        other = room.view(array.dtype).reshape(array.shape)
        other[...] = array
        return other
    copy = array.copy()
    copy.flags.writeable = order != "read-only"
    return copy


def random(seed, shape, dtype):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if dtype in "FD":
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(dtype)


def positive(seed, n, dtype):
    a = random(seed, (n, n), dtype)
    return (a @ a.conj().T + n * np.eye(n)).astype(dtype)


def close(found, expected, dtype=None):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    tolerance = 2e-4 if found.dtype.char in "fF" else 1e-11
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@some
@given(engines, types, orders, sizes, tiles, st.booleans(), seeds)
def test_cholesky(engine, dtype, order, n, tile, lower, seed):
    a = laid_out(positive(seed, n, dtype), order)
    before = a.copy()
    close(linalg.cholesky(a, lower, tile=tile, engine=engine), scipy.linalg.cholesky(a, lower))
    np.testing.assert_array_equal(a, before)


@some
@given(engines, types, orders, sizes, tiles, st.booleans(), seeds)
def test_cholesky_reads_one_triangle(engine, dtype, order, n, tile, lower, seed):
    a = positive(seed, n, dtype)
    wrong = (
        np.tril(a) + 7 * np.triu(np.ones_like(a), 1)
        if lower
        else np.triu(a) + 7 * np.tril(np.ones_like(a), -1)
    )
    found = linalg.cholesky(laid_out(wrong.astype(dtype), order), lower, tile=tile, engine=engine)
    close(found, scipy.linalg.cholesky(a, lower))


@some
@given(engines, types, st.sampled_from(ORDERS[:5]), sizes, tiles, st.booleans(), seeds)
def test_cholesky_in_place(engine, dtype, order, n, tile, lower, seed):
    a = laid_out(positive(seed, n, dtype), order)
    expected = scipy.linalg.cholesky(a, lower)
    found = linalg.cholesky(a, lower, overwrite_a=True, tile=tile, engine=engine)
    close(found, expected)
    assert n == 0 or np.shares_memory(found, a)


@some
@given(engines, types, orders, sizes, st.integers(0, 5), tiles, st.booleans(), seeds)
def test_solve(engine, dtype, order, n, rights, tile, lower, seed):
    a = laid_out(positive(seed, n, dtype), order)
    b = random(seed + 1, (n, rights) if rights else n, dtype)
    x = linalg.solve(a, laid_out(b, order), lower=lower, assume_a="pos", tile=tile, engine=engine)
    expected = scipy.linalg.solve(a.copy(), b, lower=lower, assume_a="pos")
    close(x, expected)


@some
@given(engines, types, orders, sizes, st.integers(0, 5), tiles, st.booleans(), seeds)
def test_cho_factor_and_cho_solve(engine, dtype, order, n, rights, tile, lower, seed):
    a = laid_out(positive(seed, n, dtype), order)
    b = random(seed + 1, (n, rights) if rights else n, dtype)
    expected = scipy.linalg.cho_solve(scipy.linalg.cho_factor(a, lower), b)
    factor = linalg.cho_factor(a, lower, tile=tile, engine=engine)
    close(linalg.cho_solve(factor, b), expected)
    close(factor.solve(laid_out(b, order)), expected)
    c, same = factor
    assert same is lower
    close(scipy.linalg.cho_solve((c, same), b), expected)
    theirs = scipy.linalg.cho_factor(a, lower)
    close(linalg.cho_solve(theirs, b, tile=tile, engine=engine), expected)
    triangle = np.tril if lower else np.triu
    close(triangle(c), triangle(theirs[0]))


@some
@given(engines, types, orders, sizes, tiles, st.booleans(), st.booleans(), seeds)
def test_what_a_factor_knows(engine, dtype, order, n, tile, lower, overwrite, seed):
    a = laid_out(positive(seed, n, dtype), order)
    inverse, logdet = np.linalg.inv(a), np.linalg.slogdet(a)[1]
    factor = linalg.cho_factor(a, lower, overwrite, tile=tile, engine=engine)
    tolerance = 1e-3 if dtype in "fF" else 1e-10
    np.testing.assert_allclose(factor.logdet(), logdet, rtol=tolerance, atol=tolerance)
    diagonal = factor.inverse_diagonal()
    np.testing.assert_allclose(diagonal, inverse.diagonal().real, rtol=tolerance)
    assert factor.shape == (n, n)
    assert factor.dtype == dtype
    assert factor.lower is lower


@some
@given(
    engines, types, orders, sizes, st.integers(0, 5), tiles, st.booleans(), st.booleans(),
    st.sampled_from([0, 1, 2, "N", "T", "C"]), seeds,
)  # fmt: skip
def test_solve_triangular(engine, dtype, order, n, rights, tile, lower, unit, trans, seed):
    a = random(seed, (n, n), dtype) / max(n, 1) + 2 * np.eye(n, dtype=dtype)
    a = laid_out(a.astype(dtype), order)
    b = laid_out(random(seed + 1, (n, rights) if rights else n, dtype), order)
    options = {"trans": trans, "lower": lower, "unit_diagonal": unit}
    found = linalg.solve_triangular(a, b, **options, tile=tile, engine=engine)
    close(found, scipy.linalg.solve_triangular(a, b, **options))


OPERATIONS = {0: lambda x: x, "N": lambda x: x, 1: lambda x: x.T, "T": lambda x: x.T,
              2: lambda x: x.conj().T, "C": lambda x: x.conj().T}  # fmt: skip


@some
@given(
    engines, types, orders, orders, sizes, sizes, sizes, tiles,
    st.sampled_from(list(OPERATIONS)), st.sampled_from(list(OPERATIONS)), seeds,
)  # fmt: skip
def test_matmul(engine, dtype, a_order, b_order, m, n, k, tile, trans_a, trans_b, seed):
    a = random(seed, (m, k) if trans_a in (0, "N") else (k, m), dtype)
    b = random(seed + 1, (k, n) if trans_b in (0, "N") else (n, k), dtype)
    expected = OPERATIONS[trans_a](a) @ OPERATIONS[trans_b](b)
    a, b = laid_out(a, a_order), laid_out(b, b_order)
    options = {"trans_a": trans_a, "trans_b": trans_b, "tile": tile, "engine": engine}
    close(linalg.matmul(a, b, **options), expected)
    out = laid_out(random(seed + 2, (m, n), dtype), "F" if a_order == "read-only" else a_order)
    if not out.flags.aligned:
        return
    wanted = (2 * expected - 0.5 * out).astype(dtype)
    same = linalg.matmul(a, b, out, alpha=2, beta=-0.5, **options)
    assert same is out
    close(out, wanted)


@some
@given(engines, types, st.integers(1, 40), st.integers(1, 40), seeds)
def test_matmul_of_vectors(engine, dtype, m, n, seed):
    a, x, y = random(seed, (m, n), dtype), random(seed + 1, n, dtype), random(seed + 2, m, dtype)
    for left, right in ((a, x), (y, a), (x, x), (x[None, :], x), (a, x[:, None])):
        found, expected = linalg.matmul(left, right, engine=engine), np.matmul(left, right)
        assert type(found) is type(expected)
        close(np.asarray(found), np.asarray(expected))


@some
@given(
    engines, types, orders, sizes, sizes, tiles, st.booleans(), st.booleans(), st.booleans(), seeds
)
def test_syrk_and_herk(engine, dtype, order, n, k, tile, transposed, lower, hermitian, seed):
    a = laid_out(random(seed, (k, n) if transposed else (n, k), dtype), order)
    c = random(seed + 1, (n, n), dtype)
    np.fill_diagonal(c, c.diagonal().real)
    if hermitian:
        product = a.conj().T @ a if transposed else a @ a.conj().T
        function, trans = linalg.herk, 2 * transposed
    else:
        product = a.T @ a if transposed else a @ a.T
        function, trans = linalg.syrk, int(transposed)
    keep = np.tril if lower else np.triu
    rest = c - keep(c)
    where = {"tile": tile, "engine": engine}
    close(function(1.5, a, trans=trans, lower=lower, **where), keep(1.5 * product).astype(dtype))
    found = function(1.5, a, -2.0, c, trans, lower, **where)
    close(found, (keep(1.5 * product - 2 * c) + rest).astype(dtype))


def test_rank_updates_are_those_of_blas():
    a, c = random(0, (4, 3), "D"), random(1, (4, 4), "D")
    close(linalg.syrk(2.0, a, 0.5, c, lower=True), blas.zsyrk(2.0, a, 0.5, c, lower=1))
    np.fill_diagonal(c, c.diagonal().real)
    close(linalg.herk(2.0, a, 0.5, c), blas.zherk(2.0, a, 0.5, c))
    target = np.asfortranarray(c)
    assert linalg.herk(2.0, a, 0.5, target, overwrite_c=True) is target


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d", "F", "D"])
def test_types_are_promoted_as_in_scipy(dtype):
    a = (np.eye(3) * 4).astype(dtype)
    b = np.ones(3, dtype)
    assert linalg.cholesky(a).dtype == scipy.linalg.cholesky(a).dtype
    assert linalg.solve(a, b).dtype == scipy.linalg.solve(a, b, assume_a="pos").dtype
    for other in "?bidFD":
        c, right = scipy.linalg.cho_factor(a), np.ones(3, other)
        expected = scipy.linalg.cho_solve(c, right)
        close(linalg.cho_solve(c, right), expected)
        close(linalg.cho_factor(a).solve(right), expected)
        close(linalg.solve_triangular(a, right), scipy.linalg.solve_triangular(a, right))
    swapped = a.astype(a.dtype.newbyteorder())
    assert linalg.cholesky(swapped).dtype == scipy.linalg.cholesky(a).dtype


def test_tiles_of_one_element():
    a, b = positive(0, 9, "D"), random(1, (9, 2), "D")
    with quadriga.Engine("emulated:2,memory=64KiB"):
        close(linalg.cholesky(a, tile=1), scipy.linalg.cholesky(a))
        factor = linalg.cho_factor(a, tile=1)
        close(factor.solve(b), scipy.linalg.solve(a, b, assume_a="pos"))
        np.testing.assert_allclose(factor.inverse_diagonal(), np.linalg.inv(a).diagonal().real)
        close(linalg.matmul(a, b, tile=1), a @ b)


def test_lists_scalars_and_matrices_of_one_element():
    close(linalg.cholesky([[4, 2], [2, 5]]), scipy.linalg.cholesky([[4, 2], [2, 5]]))
    for value in (4.0, [4.0], [[4.0]]):
        close(linalg.cholesky(value), scipy.linalg.cholesky(value))
    for a in (4, [[4]], [[-4.0]], [[2 + 1j]]):
        for b in (8, [8], [1, 2, 3], np.ones((5, 2)), np.ones((1, 3), "F"), np.empty((0, 2))):
            close(linalg.solve(a, b), scipy.linalg.solve(a, b, assume_a="pos"))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        linalg.solve([[0.0]], [1.0], assume_a="pos")
    close(linalg.solve(np.diag([1, 2, 4]), [1, 1, 1]), np.array([1, 0.5, 0.25]))


@pytest.mark.parametrize("dtype", ["i2", "f", "D"])
def test_empty_matrices(dtype):
    empty, tall = np.empty((0, 0), dtype), np.empty((0, 3), dtype)
    close(linalg.cholesky(empty), scipy.linalg.cholesky(empty))
    close(linalg.cho_solve((empty, False), tall), scipy.linalg.cho_solve((empty, False), tall))
    close(linalg.cho_factor(empty).solve(tall), scipy.linalg.cho_solve((empty, False), tall))
    close(linalg.solve_triangular(empty, tall), scipy.linalg.solve_triangular(empty, tall))
    none = np.empty((2, 0), dtype)
    close(linalg.cho_solve((np.eye(2, dtype=dtype), False), none),
          scipy.linalg.cho_solve((np.eye(2, dtype=dtype), False), none))  # fmt: skip
    zeros = linalg.matmul(np.empty((2, 0)), np.empty((0, 3)))
    np.testing.assert_array_equal(zeros, np.zeros((2, 3)))


def test_memory_mapped_files(tmp_path):
    a = positive(0, 70, "d")
    np.save(tmp_path / "a.npy", a)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "l.npy", "w+", float, a.shape)
    linalg.cholesky(mapped, lower=True, out=out, tile=32)
    out.flush()
    close(np.load(tmp_path / "l.npy"), np.linalg.cholesky(a))


def test_overwrite_b_is_in_place_where_it_can_be():
    a, b = positive(0, 20, "d"), np.asfortranarray(random(1, (20, 3), "d"))
    expected = scipy.linalg.solve(a, b, assume_a="pos")
    x = linalg.solve(a, b, assume_a="pos", overwrite_b=True)
    assert x is b
    close(b, expected)
    whole = np.ones(20, int)
    assert linalg.solve(a, whole, overwrite_b=True).dtype == float
    assert whole.tolist() == [1] * 20


@pytest.mark.parametrize("dtype", TYPES)
def test_results_are_the_same_to_the_bit_on_all_devices_and_policies(dtype):
    a, b = positive(3, 150, dtype), random(4, (150, 20), dtype)
    results = []
    for devices in ("cpu:1", "cpu:2", "emulated:1,memory=256KiB", "emulated:4,memory=256KiB"):
        for policy in ("affinity", "steal"):
            with quadriga.Engine(devices, policy=policy):
                factor = linalg.cho_factor(a, tile=32)
                product = linalg.matmul(a, b, tile=32)
                results.append([factor.unpack(clean=True), factor.solve(b), product])
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_matrix_larger_than_all_devices():
    n = 600
    a, b = positive(5, n, "d"), random(6, n, "d")
    with quadriga.Engine("emulated:2,memory=600KB") as engine:
        x = linalg.solve(a, b, assume_a="pos", tile=100)
        counters = engine.counters()
    close(x, scipy.linalg.solve(a, b, assume_a="pos"))
    assert a.nbytes > 2 * 600_000
    assert sum(device.evictions for device in counters.devices) > 0


def test_devices_for_one_call():
    close(linalg.cholesky(np.eye(9) * 4, devices="emulated:2,memory=1MiB"), np.eye(9) * 2)
    factor = linalg.cho_factor(np.eye(9) * 4, devices="cpu:1")
    close(factor.solve(np.ones(9)), np.full(9, 0.25))
    with pytest.raises(quadriga.InvalidArgument, match="not both"):
        linalg.cholesky(np.eye(2), engine=factor.engine, devices="cpu:1")


def test_progress():
    told = []
    linalg.cholesky(positive(0, 200, "d"), tile=20, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    told.clear()
    linalg.solve(positive(0, 200, "d"), np.ones(200), tile=20, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1


def test_a_progress_bar(capfd):
    linalg.cholesky(positive(0, 100, "d"), progress=True)
    assert "cholesky" in capfd.readouterr().err


def test_estimates():
    found = linalg.estimate("cholesky", 2048, tile=256, devices="emulated:2,memory=64MiB")
    assert found.seconds >= found.bound_seconds > 0
    assert found.matrix_bytes >= 2048 * 2048 * 8
    assert found.tile == 256
    assert set(found.device_bytes) >= {"emulated0", "emulated1"}
    assert "time" in str(found)
    for wrong, message in (
        (("qr", 3), "operation 'qr'"),
        (("matmul", 3), "matmul: expected 3 sizes, got 1"),
        (("cholesky", 3, 4), "cholesky: expected 1 size, got 2"),
    ):
        with pytest.raises(quadriga.InvalidArgument, match=message):
            linalg.estimate(*wrong)
