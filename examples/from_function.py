# SPDX-License-Identifier: BSD-3-Clause
# examples/from_function.py: systems whose matrix never exists: its tiles are computed when needed.
"""Fits a smooth curve to noisy samples, with a matrix given by a formula."""

import numpy as np

import quadriga
from quadriga import linalg

COUNT, NOISE = 1500, 0.1

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, COUNT))
y = np.sin(x) + NOISE * rng.standard_normal(COUNT)


def kernel(i, j):
    """A block of the matrix: i is a column of row indices, j a row of column indices."""
    return np.exp(-((x[i] - x[j]) ** 2) / 2) + NOISE**2 * (i == j)


class Stored:
    """Any object with these three will do as a matrix; this one reads what another made."""

    shape = (COUNT, COUNT)
    dtype = np.dtype(float)

    def read(self, rows, cols, out):
        out[...] = kernel(*np.ogrid[rows, cols])


with quadriga.Engine("emulated:2,memory=4MB") as engine:
    matrix = linalg.from_function(COUNT, kernel, hermitian=True)
    weights = linalg.solve(matrix, y, assume_a="pos", tile=250)
    same = linalg.solve(Stored(), y, assume_a="pos", tile=250)

    # The same covariance, compiled, computed on the devices themselves:
    compiled = linalg.rbf(x, nugget=NOISE**2)
    factor = linalg.cho_factor(compiled, tile=250)
    fast = factor.solve(y)

    at = np.linspace(0, 10, 200)
    fit = linalg.matmul(linalg.rbf(at, x), fast)
    print(f"{engine.counters().spill_bytes / 1e6:.1f} MB of host memory for tiles that fit nowhere")

error = np.sqrt(np.mean((fit - np.sin(at)) ** 2))
print(f"noise {NOISE}, error of the fit {error:.4f}, log-determinant {factor.logdet():.1f}")
assert error < NOISE / 4
assert np.allclose(weights, fast, rtol=1e-5, atol=1e-5)
assert np.array_equal(weights, same)
