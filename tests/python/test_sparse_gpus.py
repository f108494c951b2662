# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_gpus.py: sparse solvers on a GPU, beside SciPy's products and solves.
import time

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_of_tests import on_gpu, on_two_gpus
from test_sparse import right_side, varied

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness

DTYPES = ["float32", "float64", "complex64", "complex128"]
EPSILON = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-10, "complex128": 1e-10}


@pytest.fixture(scope="module")
def engine():
    with quadriga.Engine("cuda:1,memory=1GiB") as made:
        yield made


def system(n, dtype, columns=None):
    """Hermitian, with rows of very different lengths, some of which are longer than a warp."""
    random = np.random.default_rng(3)
    a = varied(n).tolil()
    long = random.integers(0, n, 40)
    a[n // 2, long] = a[long, n // 2] = 0.01
    a = a.tocsr()
    if np.dtype(dtype).kind == "c":
        turned = sp.triu(a, 1) * (0.6 + 0.8j)
        a = turned + turned.conj().T + sp.diags_array(a.diagonal())
    b = right_side(n, columns)
    return a.astype(dtype).tocsr(), b.astype(dtype)


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["csr", "sell"])
@pytest.mark.parametrize("n", [7, 100, 5003])
def test_products_are_scipys(engine, dtype, layout, n):
    for columns in (None, 1, 4, 7):
        a, x = system(n, dtype, columns)
        found = sparse.Solver(a, format=layout, engine=engine) @ x
        expected = a @ x
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert found.dtype == expected.dtype and error < EPSILON[dtype]


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("n", [7, 100, 1703])
def test_products_of_dense_blocks_are_scipys(engine, dtype, size, n):
    for columns in (None, 4, 7):
        a, _ = system(n, dtype)
        a = sp.kron(a, np.full((size, size), 0.5) + np.eye(size)).tocsr().astype(dtype)
        a.data *= np.linspace(1, 2, a.nnz)
        x = right_side(n * size, columns).astype(dtype)
        solver = sparse.Solver(a, format="blocks", engine=engine)
        expected = a @ x
        error = np.abs(solver @ x - expected).max() / np.abs(expected).max()
        assert solver.plan["dense_rows"] > 1 and error < EPSILON[dtype]


@on_gpu
def test_solves_of_dense_blocks_have_the_same_bits_by_tasks_replay_and_parts(engine):
    a, b = box_stiffness((16, 15, 14)), right_side(3 * 16 * 15 * 14)
    found = []
    ways = ({"recorded": True}, {"recorded": False}, {"parts": 3}, {"parts": 2, "overlap": False},
            {"parts": 2, "exchange": "whole"})  # fmt: skip
    for way in ways:
        solver = sparse.Solver(a, M="jacobi", engine=engine, **way)
        result = solver.solve(b, rtol=1e-8)
        assert solver.plan["format"] == "blocks" and result.reason == "converged"
        found.append((result.iterations, result.x.tobytes(), result.residuals.tobytes()))
    assert len(set(found)) == 1


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["csr", "sell"])
def test_solves_meet_their_tolerance(engine, dtype, layout):
    a, b = system(5003, dtype, 3)
    result = sparse.Solver(a, M="jacobi", format=layout, engine=engine).solve(b, rtol=1e-4)
    assert result.reason == "converged"
    assert (np.linalg.norm(b - a @ result.x, axis=0) <= 2e-4 * np.linalg.norm(b, axis=0)).all()


@on_gpu
@pytest.mark.parametrize("layout", ["csr", "sell"])
def test_parts_of_any_number_have_the_same_bits(engine, layout):
    a, b = sparse.poisson((25, 24, 23), 27), right_side(25 * 24 * 23, 2)
    found = []
    for parts in (1, 2, 3, 7):
        solver = sparse.Solver(a, M="jacobi", format=layout, engine=engine, parts=parts)
        result = solver.solve(b, rtol=1e-10)
        found.append((result.iterations, result.x.tobytes(), result.residuals.tobytes()))
    assert len(set(found)) == 1


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["csr", "sell"])
@pytest.mark.parametrize("columns", [None, 3, 7])
def test_recorded_iterations_have_the_bits_of_tasks(engine, dtype, layout, columns):
    a, b = system(5003, dtype, columns)
    found = []
    for recorded in (False, True):
        solver = sparse.Solver(a, M="jacobi", format=layout, engine=engine, recorded=recorded)
        for _ in range(2):  # the second one has the addresses of the first
            result = solver.solve(b, rtol=1e-4, maxiter=300)
            found.append((result.iterations, result.x.tobytes(), result.residuals.tobytes()))
    assert found[0][0] > 0 and len(set(found)) == 1


@on_gpu
def test_recorded_iterations_run_long_and_are_few_tasks(engine):
    a, b = sparse.poisson((48, 48, 48), 7), right_side(48**3)
    found, tasks = [], []
    for recorded in (False, True):
        solver = sparse.Solver(a, M="jacobi", engine=engine, recorded=recorded)
        before = engine.counters().devices[0].tasks
        result = solver.solve(b, rtol=0, maxiter=1000)
        tasks.append(engine.counters().devices[0].tasks - before)
        found.append((result.iterations, result.x.tobytes(), result.residuals.tobytes()))
    assert found[0][0] > 100 and found[0] == found[1]
    assert tasks[1] * 10 < tasks[0]


@on_gpu
def test_new_values_are_seen_by_recorded_iterations(engine):
    a, b = system(5003, "float64")
    solver = sparse.Solver(a, M="jacobi", engine=engine, recorded=True)
    solver.solve(b, rtol=1e-8)
    solver.update(2 * a)
    x = solver.solve(b, rtol=1e-10).x
    assert np.linalg.norm(b - 2 * a @ x) <= 1.01e-10 * np.linalg.norm(b)


@on_gpu
@pytest.mark.parametrize("recorded", [False, True])
def test_callbacks_see_each_iteration(engine, recorded):
    a, b = system(500, "float64")
    seen = []
    solver = sparse.Solver(a, M="jacobi", engine=engine, recorded=recorded)
    result = solver.solve(b, rtol=1e-8, callback=lambda x: seen.append(x.copy()))
    assert len(seen) == result.iterations
    assert (seen[-1] == result.x).all() and (seen[0] != seen[1]).any()


@on_gpu
def test_breakdowns_are_noticed_on_the_device(engine):
    a, b = system(500, "float64")
    indefinite = a - 100 * sp.eye_array(500)
    lacking = a.copy()
    lacking.data[5] = np.nan
    for matrix, reason in ((indefinite, "not_positive_definite"), (lacking, "not_finite")):
        found = []
        for recorded in (False, True):
            result = sparse.Solver(matrix, engine=engine, recorded=recorded).solve(b)
            assert result.reason == reason
            found.append((result.iterations, result.x.tobytes()))
        assert found[0] == found[1]


@on_gpu
def test_slices_are_the_default_on_gpus(engine):
    a, b = system(5003, "float64")
    found = [
        sparse.Solver(a, format=layout, engine=engine).solve(b, rtol=1e-8).x.tobytes()
        for layout in ("auto", "sell")
    ]
    assert found[0] == found[1]


@on_gpu
def test_a_matrix_bigger_than_the_memory_streams_through():
    a = sparse.poisson((60, 60, 60), 27)  # 70 MB
    b = right_side(a.shape[0])
    with quadriga.Engine("cuda:1,memory=32MiB") as small:
        result = sparse.Solver(a, M="jacobi", engine=small).solve(b, rtol=1e-6)
        assert result.reason == "converged"
        assert sum(device.evictions for device in small.counters().devices) > 0
    assert np.linalg.norm(b - a @ result.x) <= 1.01e-6 * np.linalg.norm(b)


@on_two_gpus
@pytest.mark.parametrize("way", [{}, {"exchange": "whole"}, {"route": "host"}, {"overlap": False}])
def test_two_gpus_give_the_bits_of_one(engine, way):
    a, b = sparse.poisson((40, 41, 42), 27), right_side(40 * 41 * 42, 2)
    one = sparse.Solver(a, M="jacobi", engine=engine).solve(b, rtol=1e-8)
    with quadriga.Engine("cuda:2,memory=1GiB") as both:
        solver = sparse.Solver(a, M="jacobi", recorded=False, engine=both, **way)
        assert len(set(solver.plan["devices"])) == 2
        two = solver.solve(b, rtol=1e-8)
    assert two.iterations == one.iterations and (two.x == one.x).all()


@pytest.fixture(scope="module")
def both_gpus():
    with quadriga.Engine("cuda:2,memory=1GiB") as made:
        yield made


@on_two_gpus
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["csr", "sell"])
@pytest.mark.parametrize("columns", [None, 3])
def test_iterations_recorded_on_two_gpus_have_the_bits_of_one(
    engine, both_gpus, dtype, layout, columns
):
    a, b = system(5003, dtype, columns)
    found = []
    for where, recorded in ((engine, True), (both_gpus, False), (both_gpus, True)):
        solver = sparse.Solver(a, M="jacobi", format=layout, engine=where, recorded=recorded)
        assert solver.plan["recorded"] is recorded
        assert len(set(solver.plan["devices"])) == (1 if where is engine else 2)
        for _ in range(3):  # queued, recorded, replayed
            result = solver.solve(b, rtol=1e-4, maxiter=300)
            found.append((result.iterations, result.x.tobytes(), result.residuals.tobytes()))
    assert found[0][0] > 0 and len(set(found)) == 1


def steps_of_steepest_descent(A, b):
    """Of a user's own method: products, dot products, sums, and products by elements."""
    x, r = A.zeros(), b.copy()
    for _ in range(20):
        q = A @ r
        alpha = sparse.dot(r, r) / sparse.dot(r, q)
        x += alpha * r
        r = r - alpha * q
    return x * b - sparse.norm(r) * x


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_as_on_the_host(engine, dtype):
    a, b = system(3001, dtype)
    found = []
    for where in ({"engine": engine}, {"devices": "cpu:2"}):
        A = sparse.Matrix(a, **where)
        x = steps_of_steepest_descent(A, A.vector(b))
        found.append((x.to_array(), complex(sparse.dot(A.vector(b), x)), float(sparse.norm(x))))
    near = {"rtol": 100 * EPSILON[dtype]}
    for gpu, host in zip(*found, strict=True):
        np.testing.assert_allclose(gpu, host, **near, atol=near["rtol"] * np.abs(host).max())


@on_two_gpus
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_on_two_gpus_have_the_bits_of_one(engine, both_gpus, dtype):
    a, b = system(5003, dtype)
    found = []
    for where in (engine, both_gpus):
        A = sparse.Matrix(a, parts=2, engine=where)
        found.append(steps_of_steepest_descent(A, A.vector(b)).to_array().tobytes())
    assert found[0] == found[1]


@on_two_gpus
def test_dense_blocks_recorded_on_two_gpus_have_the_bits_of_one(engine, both_gpus):
    a, b = box_stiffness((16, 15, 14)), right_side(3 * 16 * 15 * 14)
    found = []
    for where, exchange in ((engine, "auto"), (both_gpus, "auto"), (both_gpus, "whole")):
        solver = sparse.Solver(a, M="jacobi", engine=where, recorded=True, exchange=exchange)
        result = solver.solve(b, rtol=1e-8)
        assert solver.plan["format"] == "blocks" and result.reason == "converged"
        found.append((result.iterations, result.x.tobytes(), result.residuals.tobytes()))
    assert len(set(found)) == 1


@on_two_gpus
def test_iterations_recorded_on_two_gpus_run_long_and_are_few_tasks(both_gpus):
    a, b = sparse.poisson((48, 48, 48), 7), right_side(48**3)
    found, tasks = [], []
    for recorded in (False, True):
        solver = sparse.Solver(a, M="jacobi", engine=both_gpus, recorded=recorded)
        before = sum(device.tasks for device in both_gpus.counters().devices)
        result = solver.solve(b, rtol=0, maxiter=1000)
        tasks.append(sum(device.tasks for device in both_gpus.counters().devices) - before)
        found.append((result.iterations, result.x.tobytes(), result.residuals.tobytes()))
    assert found[0][0] > 100 and found[0] == found[1]
    assert tasks[1] * 10 < tasks[0]


@on_two_gpus
def test_iterations_recorded_on_two_gpus_notice_breakdowns_and_new_values(both_gpus):
    a, b = system(5003, "float64")
    indefinite = a - 100 * sp.eye_array(5003)
    for matrix, reason in ((indefinite, "not_positive_definite"), (a * np.nan, "not_finite")):
        result = sparse.Solver(matrix, engine=both_gpus, recorded=True).solve(b)
        assert result.reason == reason
    solver = sparse.Solver(a, M="jacobi", engine=both_gpus, recorded=True)
    solver.solve(b, rtol=1e-8)
    solver.update(2 * a)
    x = solver.solve(b, rtol=1e-10).x
    assert np.linalg.norm(b - 2 * a @ x) <= 1.01e-10 * np.linalg.norm(b)
    seen = []
    result = solver.solve(b, rtol=1e-8, callback=lambda x: seen.append(x.copy()))
    assert len(seen) == result.iterations and (seen[-1] == result.x).all()


@on_two_gpus
def test_iterations_recorded_on_two_gpus_are_interrupted(both_gpus):
    a, b = sparse.poisson((64, 64, 64), 27), right_side(64**3)
    solver = sparse.Solver(a, engine=both_gpus, recorded=True)

    def interrupt(iterations):
        if iterations > 100:
            raise KeyboardInterrupt

    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        solver.solve(b, rtol=0, maxiter=10**7, progress=interrupt)
    assert time.perf_counter() - begin < 120
    assert solver.solve(b, rtol=1e-6).reason == "converged"


@on_two_gpus
def test_small_systems_stay_on_one_gpu():
    with quadriga.Engine("cuda:2,memory=1GiB") as both:
        solver = sparse.Solver(sparse.poisson((20, 20, 20), 7), engine=both)
        assert len(solver.plan["devices"]) == 1
