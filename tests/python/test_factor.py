# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_factor.py: factors stay where they are, come home when asked, and last in files.
import errno
import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import scipy.linalg

import quadriga
from quadriga import linalg


def positive(n, seed=0):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def test_a_solve_moves_no_tile_that_is_there():
    a, b = positive(120), np.ones((120, 2))
    with quadriga.Engine("emulated:1,memory=4MiB") as engine:
        factor = linalg.cho_factor(a, tile=40)
        assert factor.held().devices["emulated0"] >= 120 * 121 // 2 * 8
        engine.reset_counters()
        x = factor.solve(b)
        moved = engine.counters().bytes
    assert moved == 2 * b.nbytes
    np.testing.assert_allclose(x, scipy.linalg.solve(a, b, assume_a="pos"))


def test_overwriting_keeps_the_factor_in_the_matrix():
    a = np.asfortranarray(positive(90))
    before = a.copy()
    with quadriga.Engine("emulated:2,memory=1MiB"):
        factor = linalg.cho_factor(a, lower=True, overwrite_a=True, tile=32)
        c, lower = factor
        assert np.shares_memory(c, a)
        np.testing.assert_allclose(np.tril(a), np.linalg.cholesky(before))
        np.testing.assert_allclose(before @ factor.solve(np.ones(90)), np.ones(90))
        clean = factor.unpack(clean=True)
        np.testing.assert_array_equal(clean, np.tril(a))


def test_a_factor_outlives_its_engine_s_block_and_holds_its_matrix():
    class Array(np.ndarray):
        pass

    a = np.asfortranarray(positive(50)).view(Array)
    alive = weakref.ref(a)
    expected = scipy.linalg.solve(a, np.ones(50), assume_a="pos")
    with quadriga.Engine("emulated:1,memory=1MiB"):
        factor = linalg.cho_factor(a, overwrite_a=True, tile=20)
    del a
    gc.collect()
    np.testing.assert_allclose(factor.solve(np.ones(50)), expected)
    del factor
    gc.collect()
    assert alive() is None


def test_unpacking():
    factor = linalg.cho_factor(positive(10), lower=True)
    c, lower = factor
    assert lower is True
    assert len(factor) == 2
    assert factor[1] is True
    np.testing.assert_array_equal(factor[0], c)
    np.testing.assert_array_equal(factor[-2], c)
    with pytest.raises(IndexError):
        factor[2]
    assert "order 10" in repr(factor)
    assert "order 10" in factor._repr_html_()


def test_complex_right_hand_sides_of_real_factors():
    a = positive(30)
    b = np.ones(30) + 2j * np.arange(30)
    np.testing.assert_allclose(
        linalg.cho_factor(a).solve(b), scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b)
    )


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=512KiB"])
def test_files(tmp_path, dtype, devices):
    a = positive(70).astype(dtype)
    path = tmp_path / "a.factor"
    with quadriga.Engine(devices):
        factor = linalg.cho_factor(a, lower=True, tile=32)
        factor.save(path)
    with quadriga.Engine("cpu:1"):
        again = linalg.Factor.load(path)
        assert (again.shape, again.dtype, again.lower) == (factor.shape, factor.dtype, True)
        np.testing.assert_array_equal(again.unpack(clean=True), factor.unpack(clean=True))
        np.testing.assert_allclose(a @ again.solve(np.ones(70, dtype)), 1, rtol=1e-3)
    assert os.listdir(tmp_path) == ["a.factor"]


def test_names_of_files_are_those_of_open(tmp_path):
    name = os.fsencode(tmp_path / "a.factor")
    factor = linalg.cho_factor(np.eye(3))
    factor.save(name)
    np.testing.assert_array_equal(linalg.Factor.load(name).solve(np.ones(3)), np.ones(3))
    for call in (factor.save, linalg.Factor.load):
        for other in (7, None, ["a"]):
            with pytest.raises(quadriga.InvalidType, match="path is .*; expected a file's name"):
                call(other)


@pytest.mark.parametrize(
    ("before", "mask", "after"),
    [(None, 0o022, 0o644), (None, 0o077, 0o600), (0o600, 0o022, 0o600), (0o664, 0o077, 0o664)],
)
def test_modes_are_kept_and_new_files_follow_the_umask(tmp_path, before, mask, after):
    path = tmp_path / "a.factor"
    if before is not None:
        path.write_text("before")
        path.chmod(before)
    umask = os.umask(mask)
    try:
        linalg.cho_factor(positive(10)).save(path)
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == after


def test_bad_files(tmp_path):
    path = tmp_path / "a.factor"
    linalg.cho_factor(positive(40)).save(path)
    whole = path.read_bytes()
    for content, match in (
        (whole[:-8], "truncated|bytes"),
        (whole[:10], ""),
        (b"", ""),
        (b"\x93NUMPY" + whole[6:], "factor"),
    ):
        path.write_bytes(content)
        with pytest.raises(quadriga.IoError, match=match or str(path)) as caught:
            linalg.Factor.load(path)
        assert isinstance(caught.value, OSError)
    with pytest.raises(OSError, match="nothing-here"):
        linalg.Factor.load(tmp_path / "nothing-here")
    with pytest.raises(OSError, match="no-such-folder"):
        linalg.cho_factor(positive(4)).save(tmp_path / "no-such-folder" / "x")


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no way to fill a disk here")
    import resource

    factor = linalg.cho_factor(positive(100))
    path = tmp_path / "a.factor"
    path.write_text("what was there")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(quadriga.IoError, match=os.strerror(errno.EFBIG) + "|space|large"):
            factor.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "what was there"
    assert os.listdir(tmp_path) == ["a.factor"]


MEMORY = """
import resource, sys
import numpy as np
import quadriga
from quadriga import linalg

n = 6000
order, work = sys.argv[1:]
with quadriga.Engine("cpu:2"):
    linalg.cholesky(np.eye(300), overwrite_a=True)
    a = np.zeros((n, n), order=order)
    a[...] = 1.0
    a.reshape(-1, order="A")[:: n + 1] += n
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    before = peak()
    getattr(linalg, work)(a, lower=True, overwrite_a=True)
    print((a.nbytes + peak() - before) / a.nbytes)
"""


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("work", ["cholesky", "cho_factor"])
def test_overwriting_needs_no_second_matrix(order, work):
    command = [sys.executable, "-c", MEMORY, order, work]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) <= 1.05


@pytest.mark.parametrize("trace", [False, True])
def test_a_factor_outlives_its_engine(trace):
    a = positive(50)
    with quadriga.Engine("emulated:1", trace=trace) as engine:
        factor = linalg.cho_factor(a, engine=engine)
        with engine.section("solves"):
            factor.solve(np.ones(50))
    np.testing.assert_allclose(a @ factor.solve(np.ones(50)), np.ones(50))
    assert factor.inverse_diagonal().shape == (50,)
