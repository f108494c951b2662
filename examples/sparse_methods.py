# SPDX-License-Identifier: BSD-3-Clause
# examples/sparse_methods.py: two methods as a textbook has them, on two emulated devices.
"""Preconditioned conjugate gradients, and conjugate residuals, which isn't built in."""

import numpy as np

from quadriga import sparse
from quadriga.sparse import dot, norm


def conjugate_gradients(A, b, M, rtol=1e-10):
    """Hestenes and Stiefel, 1952; M is a vector: the inverse of A's diagonal."""
    x, r = A.zeros(), b.copy()
    z = M * r
    p, rho, tolerance = z, dot(r, z), rtol * norm(b)
    while norm(r) > tolerance:
        q = A @ p
        alpha = rho / dot(p, q)
        x += alpha * p
        r -= alpha * q
        z = M * r
        last, rho = rho, dot(r, z)
        p = z + rho / last * p
    return x


def conjugate_residuals(A, b, rtol=1e-10):
    """Saad, Iterative Methods for Sparse Linear Systems, algorithm 6.20."""
    x, r = A.zeros(), b.copy()
    p, Ar = r.copy(), A @ r
    Ap, rho, tolerance = Ar, dot(r, Ar), rtol * norm(b)
    while norm(r) > tolerance:
        alpha = rho / dot(Ap, Ap)
        x += alpha * p
        r -= alpha * Ap
        Ar = A @ r
        last, rho = rho, dot(r, Ar)
        p = r + rho / last * p
        Ap = Ar + rho / last * Ap
    return x


a = sparse.poisson((30, 30, 30))  # a SciPy array; any matrix that sparse.cg takes will do
A = sparse.Matrix(a, devices="emulated:2,memory=64MiB")
b = A.vector(np.ones(a.shape[0]))
x = conjugate_gradients(A, b, A.vector(1 / a.diagonal()))
y = conjugate_residuals(A, b)

residual = float(norm(b - A @ x) / norm(b))
difference = float(norm(x - y) / norm(x))
print(f"|b - A x| = {residual:.1e} |b|; the two solutions differ by {difference:.1e}")
assert residual < 2e-10 and difference < 1e-7
assert np.allclose(a @ x.to_array(), 1)
