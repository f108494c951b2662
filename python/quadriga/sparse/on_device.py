# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/on_device.py: conjugate gradients for operators that take arrays on a GPU.
"""Iterations on arrays of CuPy, PyTorch or another library, which never leave their device.

What is used of an array is arithmetic with arrays and scalars, `conj()`, `sum()`, and `item()` of
what has one element; all of it runs on the library's current stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidArgument
from .result import warn_of
from .textbook import Operator, conjugate_gradients

#: So much less residual is expected of a restart from x.
_LEAST_PROGRESS = 0.5


def is_on_device(value: Any) -> bool:
    """Whether an array is in a GPU's memory."""
    return hasattr(value, "__cuda_array_interface__")


@dataclass
class _State:
    """Of the recurrence; all but the norms are on the device."""

    x: Any
    r: Any
    iterations: int = 0
    norm: float = 0.0


def solve_on_device(
    A: Any, b: Any, x0: Any, M: Any, rtol: float, atol: float, maxiter: int | None,
    callback: Operator | None,
) -> tuple[Any, int]:  # fmt: skip
    """``A @ x = b`` by the textbook's iteration for operators A and M; x is an array as b is.

    Three numbers go to the host in each iteration. The residual is recomputed at the end, and
    iterations begin again from x while that helps.
    """
    if len(b.shape) != 1:
        raise InvalidArgument(
            f"b has shape {tuple(b.shape)}, and A is an operator on arrays of a device; expected "
            "one dimension"
        )
    if x0 is not None and (not is_on_device(x0) or tuple(x0.shape) != tuple(b.shape)):
        raise InvalidArgument(
            f"x0 is no array of shape {tuple(b.shape)} on a device; expected one, as b is"
        )
    product, inverse = _operator("A", A, b), _operator("M", M, b)
    tolerance = max(rtol * _norm(b), atol)
    x = b * 0 if x0 is None else x0 * 1
    state = _State(x, b - product(x))
    state.norm = _norm(state.r)
    limit = 10 * b.shape[0] if maxiter is None else maxiter
    while state.norm > tolerance and state.iterations < limit:
        before = state.norm
        reason = _iterate(state, product, inverse, tolerance, limit, callback)
        state.r = b - product(state.x)
        state.norm = _norm(state.r)
        if reason:
            warn_of(reason, state.iterations, stacklevel=3)
            return state.x, -1
        if state.norm > _LEAST_PROGRESS * before:
            break
    if not math.isfinite(state.norm):
        warn_of("not_finite", state.iterations, stacklevel=3)
        return state.x, -1
    return state.x, 0 if state.norm <= tolerance else max(1, state.iterations)


class _BrokenDown(Exception):
    """Its argument is the reason."""


def _iterate(
    state: _State, product: Operator, inverse: Operator, tolerance: float, limit: int,
    callback: Operator | None,
) -> str:  # fmt: skip
    """Until the recurrence meets the tolerance, or the limit; why it broke down, if it did."""
    steps = conjugate_gradients(product, inverse, state.x, state.r, _dot, _check)
    try:
        while state.norm > tolerance and state.iterations < limit:
            state.x, state.r = next(steps)
            state.iterations += 1
            state.norm = _norm(state.r)
            if callback is not None:
                callback(state.x)
    except _BrokenDown as found:
        return str(found)
    return ""


def _check(curvature: Any, rho: Any) -> None:
    known = _real(curvature), _real(rho)
    if not all(math.isfinite(each) for each in known):
        raise _BrokenDown("not_finite")
    if min(known) <= 0:
        raise _BrokenDown("not_positive_definite" if known[0] <= 0 else "indefinite_preconditioner")


def _dot(one: Any, other: Any) -> Any:
    return (one.conj() * other).sum()


def _real(scalar: Any) -> float:
    return float(complex(scalar.item()).real)


def _norm(vector: Any) -> float:
    squared = _real(_dot(vector, vector))
    return math.sqrt(squared) if squared >= 0 else math.nan


def _operator(name: str, given: Any, b: Any) -> Operator:
    """A function of vectors as b is, whose results are looked at."""
    if given is None:
        return lambda vector: vector
    if is_on_device(given):
        return lambda vector: given * vector
    call = getattr(given, "matvec", given)
    if not callable(call):
        raise InvalidArgument(
            f"{name} is {given!r}, and b is an array on a device; expected a function of such "
            "arrays, an operator, or a diagonal there"
        )

    def checked(vector: Any) -> Any:
        found = call(vector)
        if not is_on_device(found) or tuple(found.shape) != tuple(b.shape):
            shape = getattr(found, "shape", None)
            raise InvalidArgument(
                f"{name} returned a {type(found).__name__} of shape {shape}; expected an array of "
                f"shape {tuple(b.shape)} on a device"
            )
        return found

    return checked
