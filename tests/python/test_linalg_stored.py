# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_linalg_stored.py: matrices in files of h5py and Zarr, and those of Dask.
"""They are read tile by tile: no part that is asked for has much more than a tile's elements."""

import numpy as np
import pytest

import quadriga
from quadriga import linalg
from quadriga.linalg.wrapped import as_source

TILE, ORDER = 64, 300
LIBRARIES = ["h5py", "zarr", "dask"]


@pytest.fixture(params=["cpu:2", "emulated:2,memory=1MiB"], autouse=True)
def engine(request):
    with quadriga.Engine(request.param) as made:
        yield made


@pytest.fixture
def positive():
    random = np.random.default_rng(5).standard_normal((ORDER, ORDER))
    return random @ random.T + ORDER * np.eye(ORDER)


class Counted:
    """What counts what is read of it."""

    def __init__(self, inner):
        self.inner, self.shape, self.dtype, self.chunks = inner, inner.shape, inner.dtype, None
        self.most = 0

    def __getitem__(self, key):
        part = self.inner[key]
        self.most = max(self.most, part.size)
        return part


def stored(array, library, folder, chunks=(50, 70)):
    chunks = tuple(min(pair) for pair in zip(chunks, array.shape, strict=False))
    if library == "h5py":
        h5py = pytest.importorskip("h5py")
        file = h5py.File(folder / "matrix.h5", "a")
        return file.create_dataset(f"a{len(file)}", data=array, chunks=chunks)
    if library == "zarr":
        zarr = pytest.importorskip("zarr")
        made = zarr.open(
            str(folder / f"{id(array)}.zarr"),
            mode="w",
            shape=array.shape,
            chunks=chunks,
            dtype=array.dtype,
        )
        made[...] = array
        return made
    return pytest.importorskip("dask.array").from_array(array, chunks=chunks)


@pytest.mark.parametrize("library", LIBRARIES)
def test_they_are_read_tile_by_tile(library, tmp_path, positive):
    a = stored(positive, library, tmp_path)
    b = np.arange(float(ORDER))
    assert as_source(a) is not None
    expected = np.linalg.solve(positive, b)
    for options in ({"assume_a": "pos"}, {}):
        np.testing.assert_allclose(linalg.solve(a, b, tile=TILE, **options), expected, rtol=1e-9)
    np.testing.assert_allclose(linalg.matmul(a, positive, tile=TILE), positive @ positive)
    np.testing.assert_allclose(
        linalg.matmul(positive, a, trans_b="T", tile=TILE), positive @ positive
    )
    factor = linalg.cho_factor(a, tile=TILE)
    np.testing.assert_allclose(linalg.cho_solve(factor, b), expected, rtol=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_more_than_a_tile_at_once(library, tmp_path, positive):
    a = Counted(stored(positive, library, tmp_path))
    linalg.cholesky(a, tile=TILE)
    linalg.matmul(a, positive, tile=TILE)
    assert 0 < a.most <= TILE * TILE


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [">f8", "<f4", "i4", "c16"])
def test_types(library, dtype, tmp_path):
    array = (np.arange(80 * 90).reshape(80, 90) % 7).astype(dtype)
    right = np.ones((90, 3))
    product = linalg.matmul(stored(array, library, tmp_path), right, tile=32)
    np.testing.assert_allclose(product, array @ right)


@pytest.mark.parametrize("library", LIBRARIES)
def test_right_sides_and_vectors(library, tmp_path, positive):
    b = np.arange(2.0 * ORDER).reshape(ORDER, 2)
    expected = np.linalg.solve(positive, b)
    found = linalg.solve(positive, stored(b, library, tmp_path), assume_a="pos", tile=TILE)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    vector = stored(b[:, 1].copy(), library, tmp_path)
    found = linalg.solve(positive, vector, assume_a="pos", tile=TILE)
    np.testing.assert_allclose(found, expected[:, 1], rtol=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_arrays_are_checked_for(library, tmp_path, positive):
    positive[200, 7] += 1
    a = stored(positive, library, tmp_path)
    with pytest.raises(ValueError, match=r"isn't symmetric: element \(200, 7\)"):
        linalg.solve(a, np.ones(ORDER), tile=TILE)
    positive[7, 200] += 1
    positive[250, 250] = np.nan
    a = stored(positive, library, tmp_path)
    for work in (
        lambda: linalg.cholesky(a, tile=TILE),
        lambda: linalg.cho_factor(a, tile=TILE),
        lambda: linalg.solve(a, np.ones(ORDER), tile=TILE),
    ):
        with pytest.raises(ValueError, match="infs or NaNs"):
            work()


def test_a_function_that_is_not_symmetric_is_refused_if_nothing_is_said_of_it():
    a = linalg.from_function(50, lambda i, j: 50.0 * (i == j) + (i > j))
    with pytest.raises(ValueError, match=r"isn't symmetric: element \(1, 0\)"):
        linalg.solve(a, np.ones(50))
    linalg.solve(a, np.ones(50), assume_a="pos")


class TestSourcesAsArrays:
    a = linalg.from_function((4, 6), lambda i, j: i + 10.0 * j)
    array = np.add.outer(np.arange(4), 10.0 * np.arange(6))

    @pytest.mark.parametrize(
        "key",
        [
            np.s_[1], np.s_[-1], np.s_[1:3], np.s_[:, 2], np.s_[1, 2], np.s_[::2, ::-1], np.s_[...],
            np.s_[..., 1], np.s_[1, ...], np.s_[3:1], np.s_[-2:, ::3], np.s_[np.int64(2)], np.s_[:],
            np.s_[10:], np.s_[::-2, -2], (),
        ],
    )  # fmt: skip
    def test_elements(self, key):
        np.testing.assert_array_equal(self.a[key], self.array[key])
        np.testing.assert_array_equal(self.a.T[key], self.array.T[key])

    @pytest.mark.parametrize("key", [4, (0, 6), -5])
    def test_those_outside(self, key):
        with pytest.raises(IndexError):
            self.a[key]

    def test_whole(self):
        np.testing.assert_array_equal(np.asarray(self.a), self.array)
        assert np.asarray(self.a, "f").dtype == np.float32
        np.testing.assert_array_equal(np.array(self.a.T), self.array.T)
        with pytest.raises(ValueError, match="has no array"):
            np.array(self.a, copy=False)
        assert self.a.T.T is self.a
        assert self.a.T.shape == (6, 4)

    def test_transposes_compute(self):
        right = np.arange(8.0).reshape(4, 2)
        np.testing.assert_allclose(linalg.matmul(self.a.T, right), self.array.T @ right)
        points = np.random.default_rng(1).random((30, 2))
        kernel = linalg.rbf(points, points[:7])
        np.testing.assert_allclose(np.asarray(kernel.T), np.asarray(kernel).T)
        assert linalg.rbf(points).T.hermitian

    def test_hermitian_ones_of_complex_numbers(self):
        a = linalg.from_function(
            5, lambda i, j: 9.0 * (i == j) + 1j * (i - j), hermitian=True, dtype=complex
        )
        np.testing.assert_array_equal(np.asarray(a.T), np.asarray(a).T)
        b = np.ones(5)
        np.testing.assert_allclose(np.asarray(a).T @ linalg.solve(a.T, b), b, atol=1e-12)
