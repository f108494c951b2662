# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_overwrite.py: inputs that may be overwritten, however they lie in memory.
import numpy as np
import pytest
import scipy.linalg

import quadriga
from quadriga import linalg

ORDER = 7


def strided(a):
    big = np.zeros((2 * ORDER, 3 * ORDER), a.dtype)
    view = big[::2, ::3]
    view[...] = a
    return view


def reversed_(a):
    return np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1]


def rows_reversed(a):
    return np.ascontiguousarray(a[::-1])[::-1]


def columns_reversed(a):
    return np.asfortranarray(a[:, ::-1])[:, ::-1]


def by_rows(a):
    return a.copy(order="C")


def field(a):
    made = np.zeros(a.shape, [("first", "f8"), ("value", a.dtype), ("more", "f8")])
    made["value"] = a
    return made["value"]


def unaligned(a):
    made = np.zeros(a.shape, [("flag", "i1"), ("value", a.dtype)])
    made["value"] = a
    return made["value"]


def real_part(a):
    made = np.zeros(a.shape, np.result_type(a, 1j))
    made.real[...] = a
    return made.real


def part_of_rows(a):
    big = np.zeros((ORDER, ORDER + 5), a.dtype)
    big[:, 2 : 2 + ORDER] = a
    return big[:, 2 : 2 + ORDER]


LAYOUTS = [
    by_rows,
    np.asfortranarray,
    strided,
    reversed_,
    rows_reversed,
    columns_reversed,
    field,
    unaligned,
    real_part,
    part_of_rows,
]


def matrix():
    made = np.random.default_rng(3).standard_normal((ORDER, ORDER))
    return made @ made.T + ORDER * np.eye(ORDER)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
class TestEveryLayout:
    def test_cho_factor(self, layout, lower, engine):
        a, b = matrix(), np.arange(1.0, ORDER + 1)
        factor = linalg.cho_factor(layout(a), lower, overwrite_a=True, tile=3, engine=engine)
        c, is_lower = factor
        expected = scipy.linalg.cholesky(a, lower)
        triangle = np.tril if lower else np.triu
        np.testing.assert_allclose(triangle(c), expected, atol=1e-12)
        np.testing.assert_allclose(factor.unpack(clean=True), expected, atol=1e-12)
        x = np.linalg.solve(a, b)
        np.testing.assert_allclose(scipy.linalg.cho_solve((c, is_lower), b), x)
        np.testing.assert_allclose(linalg.cho_solve((c, is_lower), b, engine=engine), x)
        np.testing.assert_allclose(factor.solve(b + 0j), x)

    def test_cholesky(self, layout, lower, engine):
        a = matrix()
        found = linalg.cholesky(layout(a), lower, overwrite_a=True, tile=3, engine=engine)
        np.testing.assert_allclose(found, scipy.linalg.cholesky(a, lower), atol=1e-12)

    def test_solve(self, layout, lower, engine):
        a, b = matrix(), matrix()
        x = linalg.solve(
            layout(a), layout(b), lower, overwrite_a=True, overwrite_b=True, assume_a="pos",
            tile=3, engine=engine,
        )  # fmt: skip
        np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-12)

    def test_solve_triangular(self, layout, lower, engine):
        a, b = matrix(), matrix()
        x = linalg.solve_triangular(
            layout(a), layout(b), lower=lower, overwrite_b=True, tile=3, engine=engine
        )
        triangle = np.tril(a) if lower else np.triu(a)
        np.testing.assert_allclose(x, np.linalg.solve(triangle, b), atol=1e-12)

    def test_matmul_into_it(self, layout, lower, engine):
        a, b = matrix(), matrix()
        out = layout(np.zeros((ORDER, ORDER)))
        if layout is unaligned:
            with pytest.raises(quadriga.InvalidArgument, match="out must be aligned"):
                linalg.matmul(a, b, out=out, engine=engine)
            return
        linalg.matmul(layout(a), layout(b), out=out, tile=3, engine=engine)
        np.testing.assert_allclose(out, a @ b, atol=1e-12)
