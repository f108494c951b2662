# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/textbook.py: conjugate gradients as textbooks have them.
"""For vectors of any kind: arrays on a GPU, or those of a `Matrix` in parts on the devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Operator = Callable[[Any], Any]


def conjugate_gradients(
    A: Operator,
    M: Operator,
    x: Any,
    r: Any,
    dot: Callable[[Any, Any], Any],
    check: Callable[[Any, Any], None],
) -> Iterator[tuple[Any, Any]]:
    """x and r after each iteration, for ``r = b - A(x)`` (Hestenes and Stiefel, 1952).

    Vectors are added and multiplied by the scalars of `dot`. `check(curvature, rho)` gets pᴴAp and
    rᴴMr before each division by them, and raises where the iteration can't go on.
    """
    z = M(r)
    p, rho = z, dot(r, z)
    while True:
        q = A(p)
        curvature = dot(p, q)
        check(curvature, rho)
        alpha = rho / curvature
        x = x + alpha * p
        r = r - alpha * q
        yield x, r
        z = M(r)
        last, rho = rho, dot(r, z)
        p = z + rho / last * p
