# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_metis.py: rows in the order of METIS's parts.
import ctypes

import numpy as np
import pytest
import scipy.sparse as sp

from quadriga import sparse
from quadriga.errors import Error, InvalidArgument, Unavailable
from quadriga.sparse import metis, ordering
from quadriga.sparse.matrices import as_csr


def has_metis():
    try:
        metis._library()
    except Unavailable:
        return False
    return True


needs_metis = pytest.mark.skipif(not has_metis(), reason="METIS's library is not installed")


def shuffled(shape, points=None):
    a = sparse.poisson(shape, points) if points else sparse.poisson(shape)
    places = np.random.default_rng(2).permutation(a.shape[0])
    return a[places][:, places].tocsr()


class FakeMetis:
    """Parts by the numbers of nodes; keeps what it was called with."""

    def __init__(self, code=1):
        self.code = code

    def METIS_PartGraphRecursive(self, *arguments):  # noqa: N802
        def values(at, count):
            kind = ctypes.POINTER(ctypes.c_int32)
            return np.ctypeslib.as_array(ctypes.cast(arguments[at], kind), (count,))

        nodes, self.parts = int(values(0, 1)[0]), int(values(7, 1)[0])
        self.offsets = values(2, nodes + 1).copy()
        self.neighbours = values(3, int(self.offsets[-1])).copy()
        self.weights = values(4, nodes).copy()
        values(12, nodes)[:] = np.arange(nodes)[::-1] * self.parts // nodes
        return self.code


@pytest.fixture
def fake(monkeypatch):
    found = FakeMetis()
    monkeypatch.setattr(metis, "_library", lambda: (found, np.dtype(np.int32)))
    return found


def test_the_graph_is_symmetric_without_loops_and_weighs_rows(fake):
    a = sp.csr_array(np.array([[2.0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 3, 0], [0, 0, 0, 0]]))
    order = ordering.by_partition(as_csr(a))
    assert fake.parts == 4 and list(fake.weights) == [2, 1, 2, 1]
    rows = np.split(fake.neighbours, fake.offsets[1:-1])
    assert [sorted(row) for row in rows] == [[1], [0, 2], [1], []]
    assert list(order.forth(np.arange(4))) == [3, 2, 1, 0]


def test_nodes_of_several_rows_stay_together(fake):
    a = sp.kron(sparse.poisson((8, 8)), np.ones((3, 3))).tocsr() + sp.eye_array(192)
    order = ordering.by_partition(as_csr(a.tocsr()), 3)
    places = order.forth(np.arange(192))
    assert fake.weights.size == 64 and fake.parts == 64
    assert (places.reshape(-1, 3) - places[::3, None] == np.arange(3)).all()


def test_failures_of_the_library_are_told(fake, monkeypatch):
    fake.code = -2
    with pytest.raises(Error, match="ended with -2"):
        ordering.by_partition(as_csr(sparse.poisson((4, 4))))
    monkeypatch.setattr(metis, "_library", lambda: (fake, np.dtype(np.int8)))
    with pytest.raises(InvalidArgument, match="224 elements.* integers of 8 bits"):
        ordering.by_partition(as_csr(sparse.poisson((8, 8))))


def test_without_the_library_its_packages_are_named(monkeypatch):
    def refuse(name):
        raise OSError(f"no {name}")

    monkeypatch.setattr(metis, "_library", metis._library.__wrapped__)
    monkeypatch.setattr(metis.ctypes, "CDLL", refuse)
    with pytest.raises(Unavailable, match=r"libmetis5 .* cmeel-metis .*\(no libmetis\.so\.5"):
        sparse.Solver(sparse.poisson((4, 4)), order="metis", devices="cpu:1")


@needs_metis
def test_halos_are_smaller_and_the_bits_are_those_of_one_device():
    a = shuffled((16, 16, 16))
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    results = {}
    for devices in (1, 2, 4):
        solver = sparse.Solver(a, M="jacobi", order="metis", devices=f"emulated:{devices}")
        results[devices] = solver.solve(b, rtol=1e-9)
        assert solver.plan["ordered"]
        halo = sum(solver.plan["halo_rows"])
        if devices > 1:
            assert halo < 2.5 * (devices // 2 + 1) * 256, "a cut is hardly more than a side"
        assert halo <= sum(sparse.Solver(a, devices=f"emulated:{devices}").plan["halo_rows"]) / 2
    assert np.linalg.norm(b - a @ results[1].x) <= 1.01e-9 * np.linalg.norm(b)
    for devices in (2, 4):
        assert (results[devices].x == results[1].x).all()


@needs_metis
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_small_systems_are_ordered_too(n):
    solver = sparse.Solver(sp.eye_array(n).tocsr(), order="metis", devices="cpu:2")
    assert (solver.solve(np.ones(n)).x == 1).all()
