# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse.py: sparse solvers beside SciPy's, on all kinds of devices.
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from scipy.sparse import linalg as reference

import quadriga
from quadriga import sparse

DEVICES = ["cpu:2", "emulated:3,memory=16MiB"]


def laplacian(shape):
    """By sums of Kronecker products."""
    total = None
    for axis, size in enumerate(shape):
        ends = [-np.ones(size - 1), 2 * np.ones(size), -np.ones(size - 1)]
        line = sp.diags_array(ends, offsets=[-1, 0, 1], shape=(size, size))
        before, after = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
        term = sp.kron(sp.kron(sp.eye_array(before), line), sp.eye_array(after))
        total = term if total is None else total + term
    return total.tocsr()


def varied(n, seed=1):
    """Positive definite, with a diagonal that Jacobi makes use of."""
    random = np.random.default_rng(seed)
    a = sp.random_array((n, n), density=6 / n, rng=random, format="csr")
    a = a + a.T + sp.diags_array(np.abs(a + a.T).sum(axis=0) + 0.1)
    scale = sp.diags_array(random.uniform(0.1, 10, n))
    return (scale @ a @ scale).tocsr()


def right_side(n, columns=None, seed=2):
    return np.random.default_rng(seed).standard_normal(n if columns is None else (n, columns))


def iterations_of(method, *arguments, **options):
    made = []
    x, info = method(*arguments, callback=lambda x: made.append(0), **options)
    assert info == 0
    return x, len(made)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("jacobi", [False, True])
def test_cg_converges_as_scipys(devices, jacobi):
    a, b = varied(3000), right_side(3000)
    m = sp.diags_array(1 / a.diagonal()) if jacobi else None
    expected, count = iterations_of(reference.cg, a, b, rtol=1e-9, M=m)
    with quadriga.Engine(devices) as engine:
        x, made = iterations_of(
            sparse.cg, a, b, rtol=1e-9, M="jacobi" if jacobi else None, engine=engine
        )
        again, _ = sparse.cg(a, b, rtol=1e-9, M=1 / a.diagonal() if jacobi else None, engine=engine)
        same, _ = sparse.cg(a, b, rtol=1e-9, M=m, engine=engine)
    assert same.tobytes() == again.tobytes()
    assert abs(made - count) <= 2 + count // 20
    assert np.linalg.norm(b - a @ x) <= 1e-9 * np.linalg.norm(b)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose(again, x, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_results_have_the_same_bits_for_any_number_of_devices():
    a, b = sparse.poisson((15, 14, 13), 27), right_side(15 * 14 * 13, 3)
    found = []
    for count in (1, 2, 3, 4):
        with quadriga.Engine(f"emulated:{count}") as engine:
            result = sparse.Solver(a, M="jacobi", engine=engine).solve(b, rtol=1e-10)
        found.append((result.iterations, result.x.tobytes(), result.residuals.tobytes()))
    assert len(set(found)) == 1


def test_results_have_the_same_bits_under_the_virtual_clock():
    a, b = sparse.poisson((15, 14, 13), 27), right_side(15 * 14 * 13)
    machine = Path(__file__).resolve().parents[2] / "machines" / "h200x4.json"
    found, seconds = [], []
    for count in (1, 2, 4):
        with quadriga.Engine(f"machine={machine}:{count}", virtual_clock=True) as engine:
            solver = sparse.Solver(a, engine=engine)
            begin = engine.now()
            found.append(solver.solve(b).x.tobytes())
            seconds.append(engine.now() - begin)
    assert len(set(found)) == 1 and min(seconds) > 0


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("layout", ["csr", "sell"])
def test_all_types_and_formats(dtype, layout):
    a = sparse.poisson((12, 11), dtype=dtype)
    if dtype in "FD":
        upper = sp.triu(a, 1) * 1j
        a = (upper + upper.conj().T + sp.diags_array(a.diagonal())).tocsr()
    b = right_side(132).astype(dtype)
    solver = sparse.Solver(a, M="jacobi", format=layout, devices="emulated:2")
    result = solver.solve(b, rtol=1e-5)
    assert result.reason == "converged" and result.x.dtype == np.dtype(dtype)
    assert np.linalg.norm(b - a @ result.x) <= 1.01e-5 * np.linalg.norm(b)
    np.testing.assert_allclose(solver @ b, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_matrix, sp.bsr_array,
                                  sp.lil_array, sp.dia_array, sp.dok_array,
                                  lambda a: a.toarray()])  # fmt: skip
def test_any_format_of_scipy_and_dense_arrays(make):
    a = sparse.poisson((9, 8))
    x, info = sparse.cg(make(a), np.ones(72), devices="cpu:1")
    assert info == 0
    assert np.linalg.norm(1 - a @ x) <= 1e-5 * np.sqrt(72)


def test_unsorted_and_repeated_indices_are_summed():
    values = np.array([1.0, -1, 3, 4, -1, 0.0, 2])
    columns = np.array([0, 1, 0, 1, 0, 1, 1])
    a = sp.csr_array((values, columns, [0, 3, 7]), shape=(2, 2))
    for wide in (np.int32, np.int64):
        a.indptr, a.indices = a.indptr.astype(wide), a.indices.astype(wide)
        for m in (None, "jacobi"):
            x, info = sparse.cg(a, [1.0, 2.0], M=m, devices="cpu:1")
            assert info == 0
            np.testing.assert_allclose(x, np.linalg.solve([[4, -1], [-1, 6]], [1, 2]), rtol=1e-5)


def test_types_are_those_of_scipy():
    a = sparse.poisson(20)
    for of_a, of_b in (("i", "i"), ("f", "f"), ("f", "d"), ("d", "F"), ("D", "f"), ("?", "d")):
        given = sp.eye_array(20, dtype="?").tocsr() if of_a == "?" else a.astype(of_a)
        b = np.ones(20, of_b)
        ours, info = sparse.cg(given, b, devices="cpu:1")
        theirs, _ = reference.cg(given, b)
        assert info == 0 and ours.dtype == theirs.dtype


def test_shapes_are_those_of_scipy_and_several_right_sides():
    a = sparse.poisson((6, 5))
    assert sparse.cg(a, np.ones((30, 1)), devices="cpu:1")[0].shape == (30,)
    b = right_side(30, 4)
    x, info = sparse.cg(a, b, rtol=1e-9, devices="cpu:1")
    assert info == 0
    for j in range(4):
        alone, _ = sparse.cg(a, b[:, j], rtol=1e-9, devices="cpu:1")
        assert np.array_equal(alone, x[:, j])
    assert sparse.cg(a, np.ones((30, 0)), devices="cpu:1")[0].shape == (30, 0)


def test_matrix_market_files(tmp_path):
    a = sparse.poisson((8, 7))
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, a, symmetry="symmetric")
    x, info = sparse.cg(path, np.ones(56), devices="cpu:1")
    assert info == 0 and np.linalg.norm(1 - a @ x) <= 1e-5 * np.sqrt(56)
    with pytest.raises(quadriga.IoError, match="absent.mtx"):
        sparse.cg(tmp_path / "absent.mtx", np.ones(56))
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 9\n1 1 1.0\n")
    with pytest.raises(quadriga.InvalidArgument, match=r"a\.mtx is not a Matrix Market file"):
        sparse.cg(path, np.ones(3))


def test_operators_and_functions_are_called_on_the_host():
    a, b = varied(500), right_side(500)
    operator = reference.aslinearoperator(a)
    inverse = reference.LinearOperator(a.shape, matvec=lambda r: r / a.diagonal())
    for left, m in ((operator, None), (lambda x: a @ x, inverse), (a, inverse), (a, inverse)):
        x, info = sparse.cg(left, b, rtol=1e-8, M=m, devices="cpu:2")
        assert info == 0
        assert np.linalg.norm(b - a @ x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("name", ["bicgstab", "gmres", "minres"])
@pytest.mark.parametrize("devices", DEVICES)
def test_methods_of_scipy_with_products_of_ours(name, devices):
    a, b = varied(800), right_side(800)
    if name != "minres":
        a = a + sp.diags_array(np.full(799, 0.05), offsets=1)
    m = "jacobi" if name != "gmres" else 1 / a.diagonal()
    x, info = getattr(sparse, name)(a, b, rtol=1e-7, M=m, devices=devices)
    assert info == 0
    assert np.linalg.norm(b - a @ x) <= 1e-7 * np.linalg.norm(b)


def test_a_solver_is_an_operator_of_scipys():
    rng = np.random.default_rng(4)
    dense = rng.standard_normal((12, 12)) + 1j * rng.standard_normal((12, 12))
    dense = dense @ dense.conj().T + 12 * np.eye(12)
    x = rng.standard_normal((12, 3)) + 1j
    operator = reference.aslinearoperator(sparse.Solver(dense, devices="emulated:2,memory=1MiB"))
    assert (operator.shape, operator.dtype) == ((12, 12), np.complex128)
    np.testing.assert_allclose(operator @ x, dense @ x)
    np.testing.assert_allclose(operator @ x[:, 0], dense @ x[:, 0])
    np.testing.assert_allclose(operator.H @ x, dense.conj().T @ x)
    np.testing.assert_allclose(operator.T @ x[:, 0], dense.T @ x[:, 0])


def test_a_start_and_the_limit_of_iterations():
    a, b = sparse.poisson((20, 20)), right_side(400)
    x, info = sparse.cg(a, b, maxiter=5, devices="cpu:2")
    assert info == 5
    result = sparse.Solver(a, devices="cpu:2").solve(b, x0=x)
    whole = sparse.Solver(a, devices="cpu:2").solve(b)
    assert result.reason == "converged" and result.residuals[0] < whole.residuals[0]
    assert result.residuals[0] == pytest.approx(np.linalg.norm(b - a @ x))
    assert sparse.cg(a, b, maxiter=0, devices="cpu:2")[1] == 1
    x, info = sparse.cg(a, np.zeros(400), x0=b, devices="cpu:2")
    assert info == 0 and not x.any()


def test_callbacks_see_every_x_as_scipys():
    a, b = sparse.poisson((10, 10)), right_side(100)
    ours, theirs = [], []
    sparse.cg(a, b, callback=lambda x: ours.append(x.copy()), devices="emulated:2")
    reference.cg(a, b, callback=lambda x: theirs.append(x.copy()))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-9)


def test_a_solver_serves_many_right_sides():
    a = sparse.poisson((20, 20, 20), 27)
    with quadriga.Engine("emulated:2") as engine:
        solver = sparse.Solver(a, M="jacobi", engine=engine)
        moved = []
        for seed in range(3):
            b = right_side(8000, seed=seed)
            result = solver.solve(b, rtol=1e-8)
            assert result.info == 0
            assert np.linalg.norm(b - a @ result.x) == pytest.approx(result.residual, rel=1e-3)
            assert result.tolerance == pytest.approx(1e-8 * np.linalg.norm(b))
            assert len(result.residuals) == result.iterations + 1
            moved.append(engine.counters().host_bytes)
    matrix = sum(solver.plan["bytes"])
    assert moved[0] > matrix
    assert moved[2] - moved[1] < moved[0] - 0.6 * matrix  # It isn't among what moves again.


@pytest.mark.parametrize("wide", [np.int32, np.int64])
def test_an_order_is_undone_in_results(wide):
    places = np.random.default_rng(1).permutation(1000)
    a = varied(1000, 4) + sparse.poisson((10, 10, 10))[places][:, places]
    a.indptr, a.indices = a.indptr.astype(wide), a.indices.astype(wide)
    a.sort_indices()
    b, m = right_side(1000, 2), 1 / a.diagonal()
    plain = sparse.Solver(a, M=m, devices="emulated:3")
    ordered = sparse.Solver(a, M=m, order="rcm", devices="emulated:3")
    seen = []
    x = ordered.solve(b, x0=b, rtol=1e-9, callback=lambda x: seen.append(x.copy()))
    np.testing.assert_allclose(x.x, plain.solve(b, x0=b, rtol=1e-9).x, atol=1e-6)
    np.testing.assert_allclose(seen[-1], x.x)
    np.testing.assert_allclose(ordered @ b, a @ b, atol=1e-9)
    box = sparse.poisson((40, 8, 8))[:, :]
    mixed = np.random.default_rng(2).permutation(2560)
    halos = [
        sum(
            sparse.Solver(box[mixed][:, mixed], order=order, devices="emulated:4").plan["halo_rows"]
        )
        for order in (None, "rcm")
    ]
    assert halos[1] < halos[0] / 3


@pytest.mark.parametrize("layout", ["csr", "sell"])
@pytest.mark.parametrize("order", [None, "rcm"])
@pytest.mark.parametrize("m", [None, "jacobi", "diagonal"])
def test_new_values_at_the_same_places(layout, order, m):
    a, b = varied(900), right_side(900)
    other = a.copy()
    other.data = a.data * 2
    other.setdiag(a.diagonal() * 3)
    with quadriga.Engine("emulated:2") as engine:
        given = 1 / a.diagonal() if m == "diagonal" else m
        options = {"format": layout, "order": order, "engine": engine}
        solver = sparse.Solver(a, M=given, **options)
        solver.solve(b)
        new = 1 / other.diagonal() if m == "diagonal" else None
        solver.update(other, new)
        found = solver.solve(b, rtol=1e-9)
        fresh = sparse.Solver(other, M=m if new is None else new, **options).solve(b, rtol=1e-9)
        assert found.x.tobytes() == fresh.x.tobytes() and found.iterations == fresh.iterations
        for bad in (sp.eye_array(900).tocsr(), a[::-1]):
            with pytest.raises(quadriga.InvalidArgument, match="in other places than before"):
                solver.update(bad)
        assert solver.solve(b, rtol=1e-9).x.tobytes() == found.x.tobytes()
        with pytest.raises(quadriga.InvalidArgument, match="A has shape"):
            solver.update(np.eye(3))


def test_the_plan_says_how_rows_were_cut():
    plan = sparse.Solver(sparse.poisson((16, 16, 16)), devices="emulated:4").plan
    assert plan["devices"] == [0, 1, 2, 3]
    assert plan["first_rows"] == [0, 1024, 2048, 3072, 4096]
    assert plan["halo_rows"] == [256, 512, 512, 256]
    assert plan["models"] == []
    machine = Path(__file__).resolve().parents[2] / "machines" / "h200x4.json"
    with quadriga.Engine(f"machine={machine}:4", virtual_clock=True) as engine:
        models = sparse.Solver(sparse.poisson((16, 16, 16)), engine=engine, parts=4).plan["models"]
    assert [model["exchange_seconds"] > 0 for model in models] == [True] * 4
    assert all(0 < model["largest_gain"] <= 0.5 for model in models)


@pytest.mark.parametrize("shape", [(40,), (9, 7), (6, 5, 4), (1, 5), (5, 1, 3), (1,), (1, 1, 1)])
def test_grids_by_nearest_neighbours(shape):
    ours = sparse.poisson(shape)
    if min(shape) > 1:
        assert abs(ours - laplacian(shape)).max() == 0
    assert ours.has_canonical_format
    assert abs(ours - ours.T).max() == 0
    assert np.linalg.eigvalsh(ours.toarray())[0] > 0


def test_grids_by_all_neighbours():
    near = [sp.diags_array(np.ones((3, n)), offsets=[-1, 0, 1], shape=(n, n)) for n in (5, 4, 3)]
    ones = sp.kron(sp.kron(near[0], near[1]), near[2])
    assert abs(sparse.poisson((5, 4, 3), 27) - (27 * sp.eye_array(60) - ones)).max() == 0
    ones = sp.kron(near[0], near[1])
    assert abs(sparse.poisson((5, 4), 9) - (9 * sp.eye_array(20) - ones)).max() == 0
    large = sparse.poisson((64, 63, 62), 27, "f")
    assert large.dtype == np.float32 and large.has_canonical_format
    assert large.sum(axis=1)[31 * 63 * 62 + 31 * 62 + 31] == 0


@pytest.mark.parametrize("precision", [None, "mixed"])
@pytest.mark.parametrize("devices", ["cpu:2", "emulated:1", "emulated:2"])
def test_the_condition_number_is_estimated(devices, precision):
    a = sparse.poisson((15, 14))
    scale = sp.diags_array(np.linspace(1, 30, a.shape[0]))
    b = right_side(a.shape[0], 2)
    plain = sparse.Solver(a, precision=precision, devices=devices).solve(b, rtol=1e-10)
    exact = np.linalg.cond(a.toarray())
    least = (0.97 if precision is None else 0.4) * exact  # Shorter recurrences find less.
    assert plain.condition.shape == (2,)
    assert (plain.condition <= 1.001 * exact).all() and (plain.condition > least).all()
    # Jacobi undoes the scaling.
    scaled = sparse.Solver(scale @ a @ scale, M="jacobi", precision=precision, devices=devices)
    found = scaled.solve(b[:, 0], rtol=1e-10).condition
    assert least < found <= 1.001 * exact
    assert scaled.solve(b, maxiter=0).condition.tolist() == [1, 1]
