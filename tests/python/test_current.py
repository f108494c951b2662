# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_current.py: which engine a call without one uses, in threads and after a fork.
import concurrent.futures
import multiprocessing
import threading
import time

import numpy as np
import pytest

import quadriga
from quadriga import cuda_libraries, linalg


def in_thread(function):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(240)


class TestThreads:
    def test_one_that_starts_inside_of_a_block_uses_its_engine(self):
        with quadriga.Engine("cpu:1") as outer:
            assert in_thread(quadriga.default_engine) is outer
            with quadriga.Engine("cpu:1") as inner:
                assert in_thread(quadriga.default_engine) is inner
                assert in_thread(lambda: in_thread(quadriga.default_engine)) is inner
            assert in_thread(quadriga.default_engine) is outer
        shared = in_thread(quadriga.default_engine)
        assert shared not in (outer, inner)
        assert shared is quadriga.default_engine()

    def test_one_that_runs_already_stays_with_the_shared_engine(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            shared = pool.submit(quadriga.default_engine).result(240)
            with quadriga.Engine("cpu:1") as engine:
                assert pool.submit(quadriga.default_engine).result(240) is shared
                assert quadriga.default_engine() is engine

    def test_one_with_a_block_of_its_own_uses_that(self):
        def own():
            with quadriga.Engine("cpu:1") as engine:
                return quadriga.default_engine() is engine

        with quadriga.Engine("cpu:1") as outer:
            assert in_thread(own)
            assert in_thread(quadriga.default_engine) is outer

    def test_a_block_of_another_thread_is_not_this_ones(self):
        entered, leave = threading.Event(), threading.Event()

        def other():
            with quadriga.Engine("cpu:1"):
                entered.set()
                leave.wait(120)

        thread = threading.Thread(target=other)
        shared = quadriga.default_engine()
        thread.start()
        try:
            assert entered.wait(120)
            assert quadriga.default_engine() is shared
        finally:
            leave.set()
            thread.join()

    def test_blocks_of_several_threads_are_not_guessed_among(self):
        entered, leave = threading.Event(), threading.Event()

        def other():
            with quadriga.Engine("cpu:1"):
                entered.set()
                leave.wait(120)

        with quadriga.Engine("cpu:1") as engine:
            thread = threading.Thread(target=other)
            thread.start()
            try:
                assert entered.wait(120)
                with pytest.raises(quadriga.InvalidArgument, match="several threads.*pass engine="):
                    in_thread(quadriga.default_engine)
                assert quadriga.default_engine() is engine
            finally:
                leave.set()
                thread.join()
            assert in_thread(quadriga.default_engine) is engine

    def test_calls_of_the_linear_algebra_run_there(self):
        with quadriga.Engine("emulated:1,memory=1MiB") as engine:
            in_thread(lambda: linalg.matmul(np.eye(30), np.eye(30)))
            assert engine.counters().ended > 0


def solve(_):
    return linalg.solve(4 * np.eye(20), np.ones(20), assume_a="pos")[0]


def told(_):
    try:
        quadriga.default_engine()
    except quadriga.Unavailable as error:
        return str(error)
    return "nothing"


def in_fork(function):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map_async(function, [0]).get(30)[0]


class TestForks:
    @pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
    def test_a_child_gets_an_engine_of_its_own(self, devices):
        with quadriga.config(devices=devices):
            assert solve(0) == 0.25
            assert in_fork(solve) == 0.25
            assert solve(0) == 0.25

    def test_also_from_inside_of_a_block(self):
        # A child's engine has the default devices, which must not be GPUs that the tests used.
        with quadriga.config(devices="cpu:2"), quadriga.Engine("emulated:2,memory=1MiB"):
            assert in_fork(solve) == 0.25

    def test_also_while_bodies_run(self):
        slow = quadriga.codelet(access=["update"])(lambda x: time.sleep(0.002))
        with quadriga.config(devices="cpu:2"), quadriga.Engine("cpu:2") as engine:
            data = [engine.data(np.zeros(1)) for _ in range(4)]
            for _ in range(100):
                for each in data:
                    engine.submit(slow, each.update())
            for _ in range(3):
                assert in_fork(solve) == 0.25

    def test_where_gpus_were_used_the_error_names_spawn(self, monkeypatch):
        monkeypatch.setattr(cuda_libraries, "needed_by", lambda devices: True)
        monkeypatch.setattr(cuda_libraries, "load", dict)
        quadriga.Engine("cpu:1").close()
        assert "'spawn'" in in_fork(told)
