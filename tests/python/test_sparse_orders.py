# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_orders.py: orders are found once for a pattern.
import numpy as np
import pytest

from quadriga import sparse
from quadriga.sparse import known_orders, ordering


def shuffled(seed=1, shape=(12, 10)):
    a = sparse.poisson(shape)
    order = np.random.default_rng(seed).permutation(a.shape[0])
    return a[order][:, order].tocsr()


@pytest.fixture
def found(monkeypatch):
    """Patterns that were ordered, from an empty memory on."""
    patterns = []
    graph = ordering._graph

    def counted(matrix, unknowns):
        patterns.append(matrix.shape)
        return graph(matrix, unknowns)

    monkeypatch.setattr(ordering, "_graph", counted)
    monkeypatch.setattr(known_orders.known_orders, "_orders", known_orders.OrderedDict())
    return patterns


def solver(a, **options):
    return sparse.Solver(a, order="rcm", devices="cpu:1", **options)


def test_a_pattern_is_ordered_once(found):
    a = shuffled()
    b = np.arange(120.0)
    first, second = solver(a), solver(3 * a)
    assert len(found) == 1
    np.testing.assert_allclose(first @ b, a @ b)
    np.testing.assert_allclose(second @ b, 3 * (a @ b))
    assert first.plan["order_seconds"] > 0 and second.plan["ordered"]
    assert sparse.Solver(a, devices="cpu:1").plan["order_seconds"] == 0


def test_other_patterns_and_nodes_are_ordered_anew(found):
    a = shuffled()
    solver(a)
    solver(shuffled(2))
    solver(a, M=sparse.Aggregation(unknowns=2))
    assert len(found) == 3
    a.indices[:2] = a.indices[1::-1]  # The same elements, but written in place.
    solver(a)
    assert len(found) == 4


def test_few_orders_are_kept(found, monkeypatch):
    monkeypatch.setattr(known_orders, "_MOST_ORDERS", 2)
    for seed in (1, 2, 1, 3, 1, 2):
        solver(shuffled(seed))
    assert len(found) == 4 and len(known_orders.known_orders._orders) == 2
