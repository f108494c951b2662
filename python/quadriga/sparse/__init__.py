# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/__init__.py: sparse systems on all devices, with SciPy's signatures.
"""Sparse linear systems on all devices, including matrices bigger than any device's memory.

Signatures, defaults and results are those of `scipy.sparse.linalg`. Matrices are SciPy's sparse
arrays and matrices of any format, CuPy's, sparse tensors of PyTorch, NumPy's arrays, paths of
Matrix Market files and of folders with ``indptr.npy``, ``indices.npy`` and ``data.npy``, and
`RowBlocks`. Types are float32, float64, complex64 and complex128; bool and integers become
float64. Each function also takes:

engine : Engine, optional
    Where to run. Default: `quadriga.default_engine()`.
devices : str or Machine, optional
    Instead of an engine: devices for this call alone.

Results are bitwise identical for any number of devices of a kind.

Examples
--------
>>> import numpy as np
>>> from quadriga import sparse
>>> a = sparse.poisson((30, 20))
>>> x, info = sparse.cg(a, np.ones(600), M="jacobi")
>>> info
0
>>> bool(np.linalg.norm(a @ x - 1) <= 1e-5 * np.sqrt(600))
True
"""

from .functions import bicgstab, cg, gmres, minres
from .grids import poisson, poisson_rows
from .preconditioners import Aggregation
from .result import Result
from .row_blocks import RowBlocks
from .solver import Solver
from .vectors import Matrix, Scalar, Vector, dot, norm

__all__ = [
    "Aggregation", "Matrix", "Result", "RowBlocks", "Scalar", "Solver", "Vector", "bicgstab", "cg",
    "dot", "gmres", "minres", "norm", "poisson", "poisson_rows",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
