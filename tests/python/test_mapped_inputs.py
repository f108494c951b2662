# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_mapped_inputs.py: arrays in mapped files that are truncated while they are used.
"""An error names the file, and the process goes on."""

from __future__ import annotations

import contextlib
import functools
import gc
import mmap
import os
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import quadriga
from quadriga import _core, linalg, sparse
from quadriga import mapped as watched

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]
ORDER = 256


def mapped(folder: Path, mode: str = "r") -> tuple[Path, np.ndarray]:
    path = folder / "a.npy"
    np.save(path, np.eye(ORDER))
    return path, np.lib.format.open_memmap(path, mode)


def forget(engine: quadriga.Engine) -> None:
    """Waits until nothing is left of an array: a thread of the engine's lets go of it."""
    for _ in range(5000):
        gc.collect()
        try:
            return engine.wait()
        except quadriga.IoError:
            time.sleep(0.05)
    pytest.fail("the truncated file is still in use")


@pytest.mark.parametrize("devices", DEVICES)
def test_a_task_whose_input_was_truncated_fails_by_the_files_name(devices, tmp_path):
    path, a = mapped(tmp_path)
    with quadriga.Engine(devices) as engine:
        x = engine.data(a)
        os.truncate(path, 1000)
        task = engine.submit(quadriga.codelet(access=["read"])(np.sum), x.read())
        with pytest.raises(quadriga.IoError, match=r"a\.npy: the file became shorter"):
            task.result()
        with pytest.raises(quadriga.IoError, match=r"a\.npy"):
            engine.wait()
        del x, task, a
        forget(engine)


HOLDERS = {
    "itself": lambda a: a,
    "a part": lambda a: a[10:],
    "a list": lambda a: [a],
    "deep": lambda a: {"of": ([a[3]], 1)},
    "memory": lambda a: memoryview(a),
    "the map": lambda a: a.base,
}


def last_of(p):
    """The last element of an array in a parameter."""
    while isinstance(p, (list, tuple, dict)):
        p = p["of"] if isinstance(p, dict) else p[0]
    return np.frombuffer(p, np.uint8)[-1] if isinstance(p, mmap.mmap) else np.asarray(p).flat[-1]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_a_parameter_that_was_truncated_fails_its_task(hold, mode, devices, tmp_path):
    """Of memory that the program may write, and of memoryviews, submit() makes copies."""
    path, a = mapped(tmp_path, mode)
    go = threading.Event()

    def last(p):
        go.wait(60)
        return last_of(p)

    with quadriga.Engine(devices) as engine:
        body = quadriga.codelet(access=[], host_only=False)(last)
        if hold is HOLDERS["the map"] or (mode == "r" and hold is not HOLDERS["memory"]):
            task = engine.submit(body, p=hold(a))
            os.truncate(path, 1000)
            go.set()
            with pytest.raises(quadriga.IoError, match=r"a\.npy: the file became shorter"):
                task.result()
            with pytest.raises(quadriga.IoError, match=r"a\.npy"):
                engine.wait()
            del task
        else:
            os.truncate(path, 1000)
            go.set()
            with pytest.raises(quadriga.IoError, match=r"a\.npy: the file became shorter"):
                engine.submit(body, p=hold(a))
        del a
        forget(engine)


def cut(folder: Path, name: str) -> np.ndarray:
    """A mapped array whose file is truncated before anybody reads it."""
    np.save(folder / name, np.eye(ORDER))
    array = np.load(folder / name, mmap_mode="r")
    os.truncate(folder / name, 1000)
    return array


USES = {
    "a product": lambda engine, a: linalg.matmul(a, np.eye(ORDER), engine=engine),
    "a list": lambda engine, a: linalg.matmul([a[0], a[1]], np.eye(ORDER), engine=engine),
    "other types": lambda engine, a: linalg.matmul(a, np.eye(ORDER, dtype="D"), engine=engine),
    "a solve": lambda engine, a: linalg.solve(np.eye(ORDER), a, engine=engine),
    "an operand": lambda engine, a: engine.submit(SUM, engine.data(a).read()).result(),
    "a parameter": lambda engine, a: engine.submit(SUM_OF, p=a).result(),
    "a sparse matrix": lambda engine, a: sparse.cg(a, np.ones(ORDER), engine=engine),
    "rows": lambda engine, a: sparse.cg(
        sparse.RowBlocks(ORDER, lambda first, last: a[first:last]), np.ones(ORDER), engine=engine
    ),
}
SUM = quadriga.codelet(access=["read"], host_only=False)(lambda x: x.sum())
SUM_OF = quadriga.codelet(access=[], host_only=False)(lambda p: np.sum(p))


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_error_is_of_who_read_the_file(use, devices, tmp_path):
    """And names that file, not another one that was truncated."""
    kept = [cut(tmp_path, "first.npy"), cut(tmp_path, "second.npy")]
    whole = np.ones((ORDER, ORDER))
    for a, name in zip(kept, ("first", "second"), strict=True):
        engine = quadriga.Engine(devices)  # which tells again when it ends, if it has the array
        with contextlib.closing(engine), quadriga.Engine(devices) as other:
            with pytest.raises(quadriga.IoError, match=rf"{name}\.npy: the file became shorter"):
                use(engine, a)
            for each in (engine, other):
                assert linalg.matmul(whole, whole, engine=each)[0, 0] == ORDER
                assert each.submit(SUM, each.data(whole).read()).result() == ORDER**2
                assert each.submit(SUM_OF, p=whole).result() == ORDER**2
                assert sparse.cg(np.eye(9), np.ones(9), engine=each)[1] == 0
            other.wait()
    del kept, a
    gc.collect()


@pytest.mark.parametrize("devices", DEVICES)
def test_the_other_of_two_tasks_has_its_result(devices, tmp_path):
    a, whole = cut(tmp_path, "a.npy"), np.ones(3)
    with quadriga.Engine(devices) as engine:
        for by_name in (False, True):
            if by_name:
                failed = engine.submit(SUM_OF, p=[a])
            else:
                failed = engine.submit(SUM, engine.data(a).read())
            well = engine.submit(SUM, engine.data(whole).read())
            while not failed.done():
                time.sleep(0.001)
            assert well.result() == 3
            with pytest.raises(quadriga.IoError, match=r"a\.npy"):
                engine.wait()
            with pytest.raises(quadriga.IoError, match=r"a\.npy"):
                failed.result()
        del a, failed
        forget(engine)


def element(a, i, j):
    return a[i, j]


def test_a_function_that_reads_a_truncated_file(tmp_path):
    """Nobody was given its array, or others were: the call during which it was read fails."""
    a = cut(tmp_path, "a.npy")
    with quadriga.Engine("cpu:2") as engine:
        data = engine.data(a)
        source = linalg.from_function(ORDER, functools.partial(element, a))
        with pytest.raises(quadriga.IoError, match=r"a\.npy"):
            linalg.matmul(source, np.eye(ORDER), engine=engine)
        del data, a, source
        forget(engine)


@pytest.mark.parametrize("devices", DEVICES)
def test_linalg_says_so(devices, tmp_path):
    path, a = mapped(tmp_path)
    with quadriga.Engine(devices) as engine:
        b = np.ones((ORDER, ORDER))
        np.testing.assert_array_equal(linalg.matmul(a, b, engine=engine), b)
        os.truncate(path, 0)
        with pytest.raises(quadriga.IoError, match=r"a\.npy"):
            linalg.matmul(a[:100], b, engine=engine)
        del a
        forget(engine)
        np.testing.assert_array_equal(linalg.matmul(b, b, engine=engine), ORDER * b)


@pytest.mark.parametrize("devices", DEVICES)
def test_outputs_are_watched_as_well(devices, tmp_path):
    path, out = mapped(tmp_path, "r+")
    with quadriga.Engine(devices) as engine:
        os.truncate(path, 4096)
        with pytest.raises(quadriga.IoError, match=r"a\.npy"):
            linalg.matmul(np.eye(ORDER), np.eye(ORDER), out=out, engine=engine)
        del out
        forget(engine)


def test_a_map_without_a_name_and_one_that_ends_within_a_page(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(1000.0).tobytes())
    with path.open("rb") as file, quadriga.Engine("cpu:2") as engine:
        numbers = np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        x = engine.data(numbers)
        add = quadriga.codelet(access=["read"])(np.sum)
        assert engine.submit(add, x.read()).result() == 499500
        os.truncate(path, 100)
        with pytest.raises(quadriga.IoError, match="numbers: the file became shorter"):
            engine.submit(add, x.read()).result()
        with pytest.raises(quadriga.IoError, match="numbers: the file became shorter"):
            engine.wait()
        del x, numbers
        forget(engine)


def test_a_map_is_forgotten_with_its_arrays(tmp_path):
    for _ in range(1200):  # more than are watched at once
        _, a = mapped(tmp_path)
        assert linalg.matmul(a[:1], a[:, :1])[0, 0] == 1


@pytest.mark.parametrize(("free", "state"), [(0, "is full"), (1 << 30, "failed")])
def test_a_file_that_is_whole_did_not_become_shorter(tmp_path, monkeypatch, free, state):
    """The system refuses a page of a sparse file where its disk is full."""
    path, array = mapped(tmp_path, "r+")
    size = path.stat().st_size
    watched.watch(array)
    place = np.frombuffer(array.base, np.uint8).ctypes.data
    monkeypatch.setattr(_core, "truncated_mappings", lambda: [place])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    with pytest.raises(quadriga.IoError, match=rf"a\.npy: its disk {state}; what was written"):
        watched.check()
    os.truncate(path, 1000)
    with pytest.raises(quadriga.IoError, match=r"a\.npy: the file became shorter"):
        watched.check()
    os.truncate(path, size)
