# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_libraries.py: matrices and vectors of PyTorch and of CuPy.
# Where the libraries aren't installed, objects with the functions that are called stand in.
import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

from quadriga import sparse
from quadriga.errors import InvalidArgument


class Tensor:
    """As much of a tensor of PyTorch as is used."""

    def __init__(self, content, layout="torch.strided"):
        self.content, self.layout, self.shape = content, layout, content.shape

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        assert self.layout == "torch.strided"
        return self.content

    def crow_indices(self):
        assert self.layout == "torch.sparse_csr"
        return Tensor(self.content.indptr.astype(np.int64))

    def col_indices(self):
        return Tensor(self.content.indices.astype(np.int64))

    def values(self):
        return Tensor(self.content.data)

    def to_sparse_csr(self):
        return Tensor(self.content, "torch.sparse_csr")


def on_gpu_of(library, content):
    """What only `get` gives to the host."""
    members = {"get": lambda self: content, "shape": content.shape, "__module__": library}
    if library.startswith("cupyx"):
        members["tocsr"] = lambda self: pytest.fail("its arrays are on a GPU")
    return type("Array", (), members)()


def check(a, b, x, info):
    assert isinstance(x, np.ndarray) and info == 0
    assert np.linalg.norm(b - a @ x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("layout", ["torch.sparse_csr", "torch.sparse_coo"])
def test_tensors_of_pytorch(layout):
    a = sparse.poisson((12, 10))
    b = np.random.default_rng(1).standard_normal(120)
    given = Tensor(a, layout)
    check(a, b, *sparse.cg(given, Tensor(b), rtol=1e-8, M="jacobi"))
    check(a, b, *sparse.gmres(given, b, rtol=1e-8))
    solver = sparse.Solver(given)
    solver.update(Tensor(2 * a, layout))
    assert np.allclose(solver @ Tensor(b), 2 * (a @ b))
    check(a, b, *sparse.cg(Tensor(a.toarray()), b, rtol=1e-8))


def test_arrays_of_cupy():
    a = sparse.poisson((12, 10))
    b = np.random.default_rng(1).standard_normal(120)
    check(
        a, b, *sparse.cg(on_gpu_of("cupyx.scipy.sparse._csr", a), on_gpu_of("cupy", b), rtol=1e-8)
    )
    check(a, b, *sparse.cg(on_gpu_of("cupyx.scipy.sparse._coo", a.tocoo()), b, rtol=1e-8))


def test_tensors_of_other_dimensions_are_refused():
    given = SimpleNamespace(
        layout="torch.sparse_csr", shape=(2, 3, 3), detach=None, cpu=None, crow_indices=None
    )
    with pytest.raises(InvalidArgument, match="3 dimensions"):
        sparse.Solver(given)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch isn't installed")
def test_pytorch_itself():
    import torch

    a = sparse.poisson((12, 10))
    b = np.random.default_rng(1).standard_normal(120)
    given = torch.sparse_csr_tensor(
        torch.tensor(a.indptr), torch.tensor(a.indices), torch.tensor(a.data), a.shape
    )
    check(a, b, *sparse.cg(given, torch.tensor(b), rtol=1e-8))
    check(a, b, *sparse.cg(given.to_sparse_coo(), b, rtol=1e-8))
