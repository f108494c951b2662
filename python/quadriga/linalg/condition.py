# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/condition.py: says when a solution shows a nearly singular matrix.
"""A lower bound on a condition number, from what a solve has anyhow.

A hermitian, positive definite matrix is at least as large, in the 2-norm, as its largest diagonal
element, and its inverse as the solution over the right-hand side (Golub and Van Loan, Matrix
Computations, section 2.6). So no estimate of the inverse is made, and what is far from singular is
never warned of; a right-hand side that has nothing of what is nearly lost isn't, either.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from ..errors import LinAlgWarning
from .arrays import Array, DType, Input

_COLUMNS = 64  # looked at together


def norms(b: Input | Array) -> npt.NDArray[np.float64] | None:
    """The 2-norm of each column; None for what isn't in the host's memory."""
    if not isinstance(b, np.ndarray):
        return None
    columns = b.reshape(len(b), -1) if b.ndim == 1 else b
    count = columns.shape[1]
    found = np.empty(count)
    for begin in range(0, count, _COLUMNS):
        part = columns[:, begin : begin + _COLUMNS]
        # By the largest first: squares of very large or small numbers are none.
        largest = np.abs(part).max(axis=0, initial=0).astype(float)
        scale = np.where(largest > 0, largest, 1)
        found[begin : begin + _COLUMNS] = scale * np.linalg.norm(part / scale, axis=0)
    return found


def largest_of(a: Input) -> float:
    """The largest diagonal element; 0 for what isn't in the host's memory."""
    if not isinstance(a, np.ndarray) or a.size == 0:
        return 0.0
    return float(np.abs(a.diagonal()).max())


def warn_of_condition(
    largest: float, right: npt.NDArray[np.float64] | None, x: Input | Array, dtype: DType
) -> None:
    """Warns if the condition number is at least that of a matrix that rounding makes singular."""
    solution = norms(x)
    if right is None or solution is None:
        return
    with np.errstate(all="ignore"):
        bounds = largest * (solution / right)
    bound = float(np.max(bounds, initial=0, where=right > 0))
    if bound * float(np.finfo(dtype).eps) > 1:
        warnings.warn(
            f"an ill-conditioned matrix: its condition number is at least {bound:.0e}, so that "
            "the result may not be accurate",
            LinAlgWarning,
            stacklevel=3,
        )
