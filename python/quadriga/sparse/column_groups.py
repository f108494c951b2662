# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/column_groups.py: right-hand sides that don't fit the devices together.
"""Work on columns in groups that fit. A column's result is the same in any group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import TooLarge

Array = npt.NDArray[Any]
#: Of a solve: by column.
_LISTS = ("true_residuals", "tolerances", "conditions")


def columns_of(right: Array) -> int:
    """1 of a vector."""
    return right.shape[1] if right.ndim == 2 else 1


def multiply_in_groups(multiply: Callable[[Array], Array], right: Array) -> Array:
    """A times all columns; half of them at once where all are too many, and so on."""
    try:
        return multiply(right)
    except TooLarge:
        if columns_of(right) < 2:
            raise
    return np.hstack([multiply_in_groups(multiply, half) for half in _halves(right)])


def solve_in_groups(
    solve: Callable[[Array, Array], dict[str, Any]], right: Array, x: Array
) -> dict[str, Any]:
    """What `solve(right, x)` tells, which overwrites x; half of the columns where all are too many.

    A failed try may have changed x: each begins with a copy of it.
    """
    if columns_of(right) < 2:
        return solve(right, x)
    tried = x.copy()
    try:
        found = solve(right, tried)
    except TooLarge:
        found = {}
    if found:
        np.copyto(x, tried)
        return found
    begin = 0
    for half in _halves(right):
        end = begin + half.shape[1]
        part = np.ascontiguousarray(x[:, begin:end])
        told = solve_in_groups(solve, half, part)
        x[:, begin:end] = part
        found = _joined(found, begin, told, half.shape[1]) if found else told
        begin = end
    return found


def _halves(right: Array) -> list[Array]:
    middle = right.shape[1] // 2
    return [np.ascontiguousarray(half) for half in (right[:, :middle], right[:, middle:])]


def _joined(one: dict[str, Any], width: int, other: dict[str, Any], more: int) -> dict[str, Any]:
    """Of columns side by side, as one solve of all tells it."""
    joined = {name: [*one[name], *other[name]] for name in _LISTS}
    histories = [_history(one, width), _history(other, more)]
    longest = max(len(each) for each in histories)
    padded = [np.pad(each, ((0, longest - len(each)), (0, 0)), mode="edge") for each in histories]
    reason = other["reason"] if one["reason"] == "converged" else one["reason"]
    joined |= {
        "reason": reason,
        "iterations": max(one["iterations"], other["iterations"]),
        "residuals": np.hstack(padded).ravel().tolist(),
        "seconds": one["seconds"] + other["seconds"],
    }
    return one | joined


def _history(found: dict[str, Any], width: int) -> Array:
    return np.asarray(found["residuals"], float).reshape(-1, width)
