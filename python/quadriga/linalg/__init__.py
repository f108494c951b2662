# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/__init__.py: dense linear algebra on all devices, with SciPy's signatures.
"""Dense linear algebra on all devices, for matrices bigger than any device's memory.

Signatures, defaults and results are SciPy's (NumPy's for `matmul`). Types are float32, float64,
complex64 and complex128; bool and integers are promoted. Each function also takes:

engine : Engine, optional
    Where to run. Default: `quadriga.default_engine()`.
devices : str or Machine, optional
    Instead of an engine: devices for this call alone.
tile : int, optional
    Tile size, in rows and columns. Default: chosen by sizes, types and devices.
reproducible : bool, optional
    Choose tiles as for one device: results are then bitwise identical for any number of devices of
    the same kind and memory. Default: the engine's, else the setting `reproducible`.
progress : bool or callable, optional
    True shows a bar; a callable gets the fraction done, 0 to 1, about ten times a second.

A *source* may replace any input matrix: an object with ``shape``, ``dtype`` and
``read(rows, cols, out)``; see `from_function`. Arrays of h5py, Zarr and Dask are read tile by tile,
where they are needed. Registered arrays and their `quadriga.Data`, as inputs and as `out`, are used
after the tasks already submitted on their memory.

All functions raise `quadriga.InvalidArgument` (a ValueError) if shapes, types, values or memory
aren't accepted, `quadriga.TooLarge` (a MemoryError) if tiles don't fit on any device, and a
source's own exceptions.

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
from ..typing import SourceLike
from .estimates import Estimate, estimate, simulate
from .factor import Factor, Held, cho_factor, cho_solve
from .products import herk, matmul, syrk
from .solves import cholesky, solve, solve_triangular
from .sources import (
    Covariance,
    FunctionSource,
    Source,
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
    "simulate",
    "solve",
    "solve_triangular",
    "syrk",
]


def __dir__() -> list[str]:
    return __all__
