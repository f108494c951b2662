# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_blas.py: NumPy's BLAS runs one thread in a task, and as many as before outside.
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # a second BLAS in the process
from threadpoolctl import threadpool_info, threadpool_limits

import quadriga
from quadriga import linalg


def threads():
    """Of each BLAS in the process that has threads, but the engine's own."""
    found = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return [lib["num_threads"] for lib in found if ".libs" in lib["filepath"]]


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if not threads():
            pytest.skip("NumPy's BLAS is the engine's own here")
        yield
        assert set(threads()) == {2}


def test_a_body_sees_one_thread(two_threads, engine):
    seen = []

    @quadriga.codelet(access=["update"])
    def look(x):
        time.sleep(0.002)
        seen.extend(threads())

    for _ in range(10):
        engine.submit(look, engine.data(np.zeros(2)).update())
    engine.wait()
    assert set(seen) == {1}
    assert set(threads()) == {2}


def test_a_body_that_raises_restores_the_number(two_threads, engine):
    @quadriga.codelet(access=["update"])
    def fail(x):
        raise ValueError("as planned")

    engine.submit(fail, engine.data(np.zeros(2)).update())
    with pytest.raises(ValueError, match="as planned"):
        engine.wait()


def test_a_source_is_read_on_one_thread(two_threads, engine):
    seen = []

    def element(i, j):
        seen.extend(threads())
        return 1.0 * (i == j)

    eye = linalg.from_function(300, element, hermitian=True)
    assert np.allclose(linalg.cholesky(eye, tile=100), np.eye(300))
    assert set(seen) == {1}


def test_bodies_that_run_before_the_first_kernel_leave_it_one_thread():
    """Else products of the engine would round otherwise, and take other tasks' cores."""
    code = """
import numpy as np
from threadpoolctl import threadpool_info
from quadriga import linalg
from quadriga.blas import one_thread
with one_thread:
    linalg.matmul(np.eye(8), np.eye(8), devices="cpu:1")
print(*(each["num_threads"] for each in threadpool_info() if ".libs" not in each["filepath"]))
"""
    many = {"OPENBLAS_NUM_THREADS": "2"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | many, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert set(result.stdout.split()) <= {"1"}
