# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_column_groups.py: right-hand sides that don't fit the devices together.
import numpy as np
import pytest

import quadriga
from quadriga import sparse
from quadriga.errors import TooLarge
from quadriga.sparse.column_groups import multiply_in_groups, solve_in_groups

N, COLUMNS = 2400, 24
SMALL = "emulated:1,memory=256KiB"


@pytest.fixture(scope="module")
def system():
    a = sparse.poisson((60, 40))
    b = np.random.default_rng(1).standard_normal((N, COLUMNS))
    b[:, 20] = a @ np.ones(N)
    return a, b


@pytest.mark.parametrize("m", ["jacobi", "aggregation"])
def test_groups_of_columns_give_the_same_results(system, m):
    a, b = system
    x0 = np.full_like(b, 0.5)
    x0[:, 20] = 1  # Solved already.
    with quadriga.Engine("emulated:1") as engine:
        whole = sparse.Solver(a, M=m, engine=engine).solve(b, x0, rtol=1e-8)
    with quadriga.Engine(SMALL) as engine:
        solver = sparse.Solver(a, M=m, engine=engine)
        with pytest.raises(TooLarge):
            solver._parts.iterate(b.copy(), x0.copy(), _end(), False, None, None)
        found = solver.solve(b, x0, rtol=1e-8)
        product = solver @ b
    assert (found.x == whole.x).all() and (x0[:, 0] == 0.5).all()
    for name in ("residual", "tolerance", "condition", "residuals"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    assert (found.reason, found.iterations) == (whole.reason, whole.iterations)
    np.testing.assert_allclose(product, a @ b)


def _end():
    from quadriga.sparse.distributed import End

    return End(1e-8, 0.0, -1)


def test_one_column_that_doesnt_fit_is_refused():
    def refuse(*arguments):
        raise TooLarge("mine")

    with pytest.raises(TooLarge, match="mine"):
        solve_in_groups(refuse, np.ones((4, 3)), np.ones((4, 3)))
    with pytest.raises(TooLarge, match="mine"):
        multiply_in_groups(refuse, np.ones((4, 3)))


def test_a_group_that_fails_tells_its_reason_and_leaves_other_columns():
    tried = []

    def solve(right, x):
        tried.append(right.shape[1])
        x += 1
        if right.shape[1] > 2:
            raise TooLarge("too many")
        bad = 7 in right[0]
        width = right.shape[1]
        length = 2 if bad else 1
        return {
            "reason": "iterations" if bad else "converged", "iterations": length - 1,
            "true_residuals": right[0].tolist(), "tolerances": [0.0] * width,
            "conditions": [1.0] * width, "residuals": list(range(length * width)), "seconds": 1.0,
        }  # fmt: skip

    right, x = np.arange(5, 10)[None] * np.ones((3, 1)), np.zeros((3, 5))
    found = solve_in_groups(solve, right, x)
    assert tried == [5, 2, 3, 1, 2] and (x == 1).all()
    assert (found["reason"], found["iterations"], found["seconds"]) == ("iterations", 1, 3.0)
    assert found["true_residuals"] == [5, 6, 7, 8, 9]
    assert found["residuals"] == [0, 1, 0, 0, 1, 0, 1, 1, 0, 1]
