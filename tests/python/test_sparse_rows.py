# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_rows.py: matrices whose rows are read when they are needed, and stored
# parts in a file.
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness

DEVICES = ["cpu:2", "emulated:3", "emulated:2,memory=1MiB"]


def right_side(a):
    return np.random.default_rng(1).standard_normal(a.shape[0]).astype(a.dtype)


def source_of(a, reads=None, index=np.int64):
    def read(first, last):
        if reads is not None:
            reads.append((first, last))
        rows = a[first:last]
        rows.indptr, rows.indices = rows.indptr.astype(index), rows.indices.astype(index)
        return rows

    return sparse.RowBlocks(a.shape[0], read, a.dtype)


def saved(folder: Path, a, index=np.int64):
    folder.mkdir()
    np.save(folder / "indptr.npy", a.indptr.astype(np.int64))
    np.save(folder / "indices.npy", a.indices.astype(index))
    np.save(folder / "data.npy", a.data)
    return folder


def mapped_files():
    maps = Path("/proc/self/maps").read_text().splitlines()
    return [each for each in maps if "parts.bin" in each]


@pytest.mark.parametrize("m", [None, "jacobi", "block_jacobi", "chebyshev", ("diagonal",)])
@pytest.mark.parametrize("devices", DEVICES)
def test_a_source_gives_the_bits_of_the_whole_matrix(devices, m):
    a = box_stiffness((7, 6, 5))
    b = right_side(a)
    m = 1 / a.diagonal() if m == ("diagonal",) else m
    reads = []
    with quadriga.Engine(devices) as engine:
        whole = sparse.Solver(a, M=m, engine=engine)
        solver = sparse.Solver(source_of(a, reads, np.int32), M=m, engine=engine)
        assert solver.plan["format"] == whole.plan["format"] == "blocks"
        assert solver.plan["halo_rows"] == whole.plan["halo_rows"]
        assert (solver.solve(b, rtol=1e-8).x == whole.solve(b, rtol=1e-8).x).all()
        assert (solver @ b == whole @ b).all()
    times = np.zeros(a.shape[0], int)
    for first, last in reads:
        times[first:last] += 1
    assert (times == 3).all(), "each row is read three times"
    parts = np.diff(solver.plan["first_rows"]).tolist()
    assert [last - first for first, last in reads][-2 * len(parts) :] == 2 * parts


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_types_and_formats(dtype):
    a = sparse.poisson((12, 11, 10), dtype=dtype)
    for layout in ("csr", "sell", "blocks"):
        with quadriga.Engine("emulated:2") as engine:
            x = sparse.Solver(source_of(a), format=layout, engine=engine).solve(right_side(a)).x
            same = sparse.Solver(a, format=layout, engine=engine).solve(right_side(a)).x
            assert x.dtype == dtype and (x == same).all()


def test_many_rows_of_uneven_length_are_counted_in_ranges():
    n = 40_000  # More than the first range has.
    a = sp.diags_array([np.full(n, 4.0), -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1])
    a = (a + sp.coo_array(([0.5, 0.5], ([0, n - 1], [n - 1, 0])), (n, n))).tocsr()
    reads = []
    with quadriga.Engine("cpu:2") as engine:
        x = sparse.Solver(source_of(a, reads), engine=engine).solve(right_side(a), rtol=1e-10).x
        assert (x == sparse.Solver(a, engine=engine).solve(right_side(a), rtol=1e-10).x).all()
    assert len(reads) >= 2 + 2 * 2


def test_new_values_are_read_again():
    a = sparse.poisson((20, 15))
    with quadriga.Engine("emulated:2") as engine:
        solver = sparse.Solver(source_of(a), M="jacobi", engine=engine)
        solver.update(source_of(2 * a))
        assert (solver @ np.ones(300) == 2 * (a @ np.ones(300))).all()
        with pytest.raises(quadriga.InvalidArgument, match="elements in other places"):
            solver.update(source_of((a + sp.eye_array(300, k=7)).tocsr()))
        assert (solver @ np.ones(300) == 2 * (a @ np.ones(300))).all()


def test_all_functions_take_sources():
    a = sparse.poisson((20, 15))
    b = right_side(a)
    for call in (sparse.cg, sparse.bicgstab, sparse.gmres, sparse.minres):
        x, info = call(source_of(a), b, M="jacobi", rtol=1e-6, devices="cpu:2")
        assert info == 0 and np.linalg.norm(b - a @ x) <= 1e-6 * np.linalg.norm(b)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_folders_of_mapped_arrays(tmp_path, index):
    a = sparse.poisson((20, 15))
    folder = saved(tmp_path / "a", a, index)
    x, info = sparse.cg(folder, np.ones(300), M="jacobi", devices="emulated:2")
    assert info == 0
    assert (x == sparse.cg(a, np.ones(300), M="jacobi", devices="emulated:2")[0]).all()


def test_grids_are_computed_where_they_are_needed():
    for shape, points in (((7,), None), ((9, 8), 9), ((7, 6, 5), 27)):
        a, rows = sparse.poisson(shape, points), sparse.poisson_rows(shape, points)
        x = np.arange(a.shape[0], dtype=float)
        assert rows.shape == a.shape and (rows.diagonal() == a.diagonal()).all()
        assert (sparse.Solver(rows, devices="cpu:2") @ x == a @ x).all()


@pytest.mark.parametrize("devices", DEVICES)
def test_parts_in_a_file(tmp_path, devices):
    a = sparse.poisson((20, 10, 10), 27)
    b = right_side(a)
    file = tmp_path / "parts.bin"
    with quadriga.Engine(devices) as engine:
        solver = sparse.Solver(a, M="jacobi", engine=engine, spill=file)
        assert not file.exists(), "whatever ends the process, its blocks are free"
        maps = mapped_files()
        assert maps and all(each.endswith("(deleted)") for each in maps)
        x = solver.solve(b, rtol=1e-8).x
        assert (x == sparse.Solver(a, M="jacobi", engine=engine).solve(b, rtol=1e-8).x).all()
        solver.update(2 * a)
        np.testing.assert_allclose(solver @ b, 2 * (a @ b))
        del solver
        assert not mapped_files()


def test_a_file_that_is_there_stays(tmp_path):
    file = tmp_path / "parts.bin"
    file.write_text("mine")
    with pytest.raises(quadriga.IoError, match=r"parts\.bin'.*must not exist yet"):
        sparse.Solver(sparse.poisson(9), spill=file, devices="cpu:1")
    assert file.read_text() == "mine"


def test_what_reading_raises_is_raised():
    def fail(first, last):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sparse.Solver(sparse.RowBlocks(10, fail), devices="cpu:1")
    a, calls = sparse.poisson((20, 15)), []

    def fail_later(first, last):
        calls.append(first)
        return a[first:last] if len(calls) < 3 else fail(first, last)

    with quadriga.Engine("emulated:2") as engine:
        with pytest.raises(KeyError, match="mine"):
            sparse.Solver(sparse.RowBlocks(300, fail_later), engine=engine)
        assert sparse.cg(a, np.ones(300), engine=engine)[1] == 0


def test_a_caller_who_leaves_ends_the_reading():
    a, reads, left = sparse.poisson((20, 15)), [], threading.Event()

    def read(first, last):
        reads.append(first)
        if len(reads) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            assert left.wait(240)
        return a[first:last]

    with quadriga.Engine("emulated:4") as engine:
        with pytest.raises(KeyboardInterrupt):
            sparse.Solver(sparse.RowBlocks(300, read), engine=engine)
        left.set()
        assert sparse.cg(a, np.ones(300), engine=engine)[1] == 0  # Waits for who was left behind.
    assert len(reads) == 2


@pytest.mark.parametrize(("read", "said"), [
    (lambda a, first, last: a[first : last - 1],
     r"returned rows of shape \(\d+, 300\); expected \(\d+, 300\)"),
    (lambda a, first, last: a[first:last, :-1], r"returned rows of shape \(\d+, 299\)"),
    (lambda a, first, last: a[first:last] * 1j,
     "returned complex128, and the matrix is float64"),
])  # fmt: skip
def test_rows_of_other_sizes_are_refused(read, said):
    a = sparse.poisson((20, 15))
    rows = sparse.RowBlocks(300, lambda first, last: read(a, first, last))
    with pytest.raises((quadriga.InvalidArgument, quadriga.InvalidType), match=said):
        sparse.Solver(rows, devices="emulated:2")


def test_rows_that_change_between_reads_are_refused():
    a, count = sparse.poisson((20, 15)), [0]

    def read(first, last):
        count[0] += 1
        return a[first:last] if count[0] == 1 else sp.eye_array(300).tocsr()[first:last]

    with pytest.raises(quadriga.InvalidArgument, match="row 0 of a source has 1 elements, and had"):
        sparse.Solver(sparse.RowBlocks(300, read), devices="cpu:1")


@pytest.mark.parametrize(("options", "said"), [
    ({"M": "aggregation"}, "aggregation needs the whole matrix"),
    ({"order": "rcm"}, "order is 'rcm' and needs the whole matrix"),
    ({"precision": "mixed"}, "precision is 'mixed' and needs the whole matrix"),
])  # fmt: skip
def test_what_needs_the_whole_matrix_refuses_sources(options, said):
    with pytest.raises(quadriga.InvalidArgument, match=said):
        sparse.Solver(sparse.poisson_rows((20, 15)), **options, devices="cpu:1")


@pytest.mark.parametrize(("name", "content", "error", "said"), [
    ("data", None, quadriga.IoError, r"can't read .*data\.npy"),
    ("data", b"no array", quadriga.InvalidArgument, r"data\.npy is not an array that can be"),
    ("indices", np.ones(3), quadriga.InvalidArgument, r"indices\.npy has shape \(3,\) of float64"),
    ("indices", np.ones(3, int), quadriga.InvalidArgument, "3 indices and"),
    ("indptr", np.array([0, 9, 5]), quadriga.InvalidArgument, "offsets that ascend from 0"),
])  # fmt: skip
def test_folders_that_are_no_matrix(tmp_path, name, content, error, said):
    folder = saved(tmp_path / "a", sparse.poisson((5, 4)))
    file = folder / f"{name}.npy"
    if content is None:
        file.unlink()
    elif isinstance(content, bytes):
        file.write_bytes(content)
    else:
        np.save(file, content)
    with pytest.raises(error, match=said):
        sparse.Solver(folder, devices="cpu:1")


@pytest.mark.parametrize(("given", "error"), [
    ((-1, print), quadriga.InvalidArgument), ((5, "read"), quadriga.InvalidType),
    ((5, print, "U3"), quadriga.InvalidType), ((2.5, print), quadriga.InvalidType),
])  # fmt: skip
def test_bad_arguments_of_sources(given, error):
    with pytest.raises(error):
        sparse.RowBlocks(*given)


def test_no_rows():
    a = sparse.RowBlocks(0, lambda first, last: np.zeros((0, 0)))
    assert sparse.Solver(a, devices="cpu:1").solve(np.zeros(0)).info == 0
