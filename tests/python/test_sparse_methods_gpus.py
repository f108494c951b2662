# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_methods_gpus.py: arrangements of conjugate gradients on GPUs.
"""Single-reduction and pipelined conjugate gradients: bits of tasks, and of one GPU."""

import numpy as np
import pytest
from gpus_of_tests import on_gpu, on_two_gpus

from quadriga import sparse

METHODS = ["single_reduction_cg", "pipelined_cg"]


def solved(method, devices, **options):
    a = sparse.poisson((40, 30, 20), 27)
    b = np.random.default_rng(3).standard_normal((24000, 3))
    solver = sparse.Solver(a, method, devices=devices, **options)
    result = solver.solve(b, rtol=1e-10)
    assert result.reason == "converged" and result.method == method
    # Pipelined residuals are due every 50 iterations; the others' only where they have drifted.
    assert result.replacements > 0 or method != "pipelined_cg"
    assert (np.linalg.norm(b - a @ result.x, axis=0) <= 1e-10 * np.linalg.norm(b, axis=0)).all()
    return result


@on_gpu
@pytest.mark.parametrize("m", [None, "jacobi", ("block_jacobi", 3)])
@pytest.mark.parametrize("method", METHODS)
def test_recorded_iterations_have_the_bits_of_tasks(method, m):
    recorded = solved(method, "cuda:1,memory=1GiB", M=m)
    tasks = solved(method, "cuda:1,memory=1GiB", M=m, recorded=False)
    np.testing.assert_array_equal(recorded.x, tasks.x)
    assert recorded.iterations == tasks.iterations
    classic = solved("classic_cg", "cuda:1,memory=1GiB", M=m)
    assert abs(recorded.iterations - classic.iterations) <= 3


@on_gpu
@pytest.mark.parametrize("method", METHODS)
def test_residuals_that_drift_are_replaced(method):
    a = sparse.poisson((40, 40), 5)
    a = (a @ a).tocsr()
    b = np.random.default_rng(3).standard_normal(1600)
    found = []
    for recorded in (None, False):
        solver = sparse.Solver(a, method, devices="cuda:1,memory=1GiB", recorded=recorded)
        found.append(solver.solve(b, rtol=1e-12))  # less than rounding leaves of b - A x
        assert found[-1].replacements > 0
    assert found[0].replacements == found[1].replacements
    np.testing.assert_array_equal(found[0].x, found[1].x)
    assert np.linalg.norm(b - a @ found[0].x) <= 1e-9 * np.linalg.norm(b)


@on_two_gpus
@pytest.mark.parametrize("recorded", [None, False])
@pytest.mark.parametrize("method", METHODS)
def test_two_gpus_have_the_bits_of_one(method, recorded):
    one = solved(method, "cuda:1,memory=1GiB", M="jacobi")
    for _ in range(5):  # A meeting that is missing shows now and then.
        two = solved(method, "cuda:2,memory=1GiB", M="jacobi", parts=2, recorded=recorded)
        np.testing.assert_array_equal(one.x, two.x)
