# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_mapped_rooms.py: sparse systems, pipelines and messages on truncated files.
"""What isn't registered with an engine is watched as well: an error names the file."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import numpy as np
import pytest
from ranks_of_tests import run_ranks

import quadriga
from quadriga import mapped, message, sparse

COUNT = 20_000


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    for _ in range(5000):  # a thread of an engine lets go of what it held
        gc.collect()
        if mapped.failure() is None:
            return
        time.sleep(0.05)
    mapped.check()


def on_disk(folder: Path, name: str, array: np.ndarray) -> np.ndarray:
    np.save(folder / name, array)
    return np.load(folder / name, mmap_mode="r+")


def cut(folder: Path, name: str) -> None:
    os.truncate(folder / name, 1000)


def tells(name: str) -> pytest.RaisesExc:
    return pytest.raises(quadriga.IoError, match=rf"{name}: the file became shorter")


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_sparse_matrix(tmp_path, kind, part):
    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.eye_array(COUNT, format=kind) * 2
    name = part + ".npy"
    setattr(matrix, part, on_disk(tmp_path, name, getattr(matrix, part)))
    assert (sparse.cg(matrix, np.ones(COUNT), devices="cpu:2")[0] == 0.5).all()
    cut(tmp_path, name)
    with tells(name):
        sparse.Solver(matrix, devices="cpu:2")
    with tells(name):
        sparse.gmres(matrix, np.ones(COUNT), devices="cpu:2")


@pytest.mark.parametrize("kind", ["lil", "dok", "dia", "coo", "bsr"])
def test_sparse_formats_that_hold_other_things_than_arrays(kind):
    scipy = pytest.importorskip("scipy.sparse")
    assert sparse.cg(scipy.eye_array(3, format=kind), np.ones(3))[0].tolist() == [1, 1, 1]


def test_vectors_of_sparse_systems(tmp_path):
    solver = sparse.Solver(sparse.poisson((COUNT,)), devices="emulated:2,memory=8MiB")
    for name, use in {
        "b.npy": lambda array: solver.solve(array, maxiter=2),
        "x0.npy": lambda array: solver.solve(np.ones(COUNT), array, maxiter=2),
        "x.npy": lambda array: solver @ array,
        "M.npy": lambda array: sparse.Solver(sparse.poisson((COUNT,)), M=array, devices="cpu:2"),
        "cg.npy": lambda array: sparse.cg(sparse.poisson((COUNT,)), array, devices="cpu:2"),
    }.items():
        array = on_disk(tmp_path, name, np.ones(COUNT))
        use(array)
        cut(tmp_path, name)
        with tells(name):
            use(array)
        del array
        gc.collect()


def add_one(x, y):
    y[:] = x + 1


def fields(chunks, **options):
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=8MiB")
    pipeline.source(chunks, **options)
    return pipeline.kernel(
        add_one, reads=["x"], writes={"y": lambda chunk: (chunk["x"].shape, "f8")}
    )


def test_a_pipelines_source(tmp_path):
    x = on_disk(tmp_path, "x.npy", np.zeros(COUNT))
    fields({"x": x}, rows=1000).run()
    cut(tmp_path, "x.npy")
    with tells("x.npy"):
        fields({"x": x}, rows=1000).run()
    with tells("x.npy"):
        list(fields([{"x": x}]).results())


def test_what_a_host_stage_reads(tmp_path):
    beside = on_disk(tmp_path, "beside.npy", np.zeros(COUNT))
    chunks = [{"x": np.zeros(3), "beside": beside}]
    cut(tmp_path, "beside.npy")
    with tells("beside.npy"):
        fields(chunks).map(lambda chunk: {"sum": chunk["beside"].sum()}).run()


def test_a_pipelines_constant(tmp_path):
    table = on_disk(tmp_path, "table.npy", np.zeros(COUNT))
    cut(tmp_path, "table.npy")
    pipeline = quadriga.Pipeline(devices="emulated:2,memory=8MiB").source([{"x": np.zeros(COUNT)}])
    pipeline.kernel(
        lambda table, x: np.add(x, table, out=x), updates=["x"], constants={"table": table}
    )
    with tells("table.npy"):
        pipeline.run()


def test_messages(tmp_path):
    into = np.zeros(COUNT)
    with message.world() as comm:
        for name, use in {
            "send.npy": lambda a: (comm.irecv(into, 0), comm.send(a, 0)),
            "isend.npy": lambda a: (comm.isend(a, 0), comm.recv(into, 0)),
            "strided.npy": lambda a: (comm.isend(a[::2], 0), comm.recv(into, 0)),
            "view.npy": lambda a: (comm.isend(memoryview(a), 0), comm.recv(into, 0)),
            "recv.npy": lambda a: (comm.isend(into, 0), comm.recv(a, 0)),
            "allreduce.npy": lambda a: comm.allreduce(a),
            "gatherv.npy": lambda a: comm.gatherv(a, into, [COUNT]),
        }.items():
            array = on_disk(tmp_path, name, np.ones(COUNT))
            use(array)
            cut(tmp_path, name)
            with tells(name):
                use(array)
                mapped.check()
            del array
            gc.collect()


def test_messages_between_ranks(tmp_path):
    for rank in range(2):
        np.save(tmp_path / f"{rank}.npy", np.ones(COUNT * 10))
    run_ranks(
        tmp_path,
        2,
        """
        name = f"{comm.rank}.npy"
        array = np.load(name, mmap_mode="r")
        into = np.zeros(array.size)
        plan = comm.plan([(array, 1 - comm.rank)], [(into, 1 - comm.rank)])
        for cut in (False, True):
            if cut:
                os.truncate(name, 1000)
                comm.barrier()
            for exchange in (
                lambda: comm.sendrecv(array, 1 - comm.rank, into, 1 - comm.rank),
                lambda: (plan.start(), plan.wait()),
            ):
                try:
                    exchange()
                    told = ""
                except quadriga.IoError as error:
                    told = str(error)
                assert (f"{name}: the file became shorter" in told) == cut, told
        del array, plan
        """,
    )
