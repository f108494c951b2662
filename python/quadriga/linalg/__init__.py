# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/__init__.py: dense linear algebra on all devices, with SciPy's signatures.
"""Dense linear algebra on all devices, for matrices bigger than any device's memory.

Signatures, defaults and results are SciPy's (NumPy's for `matmul`). Each function takes, too:

engine : Engine, optional
    Where to run; by default on `quadriga.default_engine()`.
devices : str or Machine, optional
    Instead of an engine: devices for this call alone.
tile : int, optional
    Tile size, in rows and columns; by default chosen by sizes, types and devices.
reproducible : bool, optional
    Choose tiles as for one device: results are then the same to the bit for any number of devices
    of a kind and memory. By default as the engine was made, else as the setting `reproducible`
    says, which is off.
progress : bool or callable, optional
    True shows a bar; a callable gets the fraction done, about ten times a second.

Wherever an input matrix is expected, an object with ``shape``, ``dtype`` and
``read(rows, cols, out)`` will do; see `from_function`. Arrays of h5py, Zarr and Dask are read tile
by tile, where they are needed. Arrays that an engine knows, and their
`quadriga.Data`, as inputs and as `out`, are used after the tasks that were submitted on their
memory.

Examples
--------
>>> import numpy as np
>>> from quadriga import linalg
>>> a = np.array([[4.0, 2.0], [2.0, 3.0]])
>>> linalg.cholesky(a, lower=True)
array([[2.        , 0.        ],
       [1.        , 1.41421356]])
>>> linalg.solve(a, [8.0, 8.0], assume_a="pos")
array([1., 2.])
"""

from numpy.linalg import LinAlgError

from ..errors import LinAlgWarning
from .estimates import Estimate, estimate
from .factor import Factor, Held, cho_factor, cho_solve
from .products import herk, matmul, syrk
from .solves import cholesky, solve, solve_triangular
from .sources import (
    Covariance,
    FunctionSource,
    Source,
    SourceLike,
    covariance,
    from_function,
    matern12,
    matern32,
    matern52,
    rbf,
)

__all__ = [
    "Covariance",
    "Estimate",
    "Factor",
    "FunctionSource",
    "Held",
    "LinAlgError",
    "LinAlgWarning",
    "Source",
    "SourceLike",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "covariance",
    "estimate",
    "from_function",
    "herk",
    "matern12",
    "matern32",
    "matern52",
    "matmul",
    "rbf",
    "solve",
    "solve_triangular",
    "syrk",
]


def __dir__() -> list[str]:
    return __all__
