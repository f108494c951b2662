# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/condition.py: says when a solution shows a nearly singular matrix.
"""Lower bounds on a condition number, from the solution first, and by the factor if that is large.

A hermitian, positive definite matrix is at least as large, in the 2-norm, as its largest diagonal
element, and its inverse as the solution over the right-hand side (Golub and Van Loan, Matrix
Computations, section 2.6). This costs nothing. If it shows that half of the digits are lost, the
1-norm of the inverse is estimated by a few solves, as LAPACK's pocon does (Higham, FORTRAN codes
for estimating the one-norm of a real or complex matrix, ACM TOMS 14(4), 1988, algorithm 4.1). What
is far from singular is never warned of; a right-hand side that has nothing of what is nearly lost
isn't, either.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

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


def bound_of(
    largest: float, right: npt.NDArray[np.float64] | None, x: Input | Array, dtype: DType
) -> tuple[float, bool]:
    """A lower bound by a solution, and whether it shows that half of the digits are lost."""
    solution = norms(x)
    if right is None or solution is None:
        return 0.0, False
    with np.errstate(all="ignore"):
        bounds = largest * (solution / right)
    bound = float(np.max(bounds, initial=0, where=right > 0))
    return bound, bound * float(np.finfo(dtype).eps) ** 0.5 > 1


def one_norm(a: Array, lower: bool) -> float:
    """The 1-norm of a hermitian matrix, of which one triangle is read."""
    sums = np.zeros(len(a))
    for begin in range(0, len(a), _COLUMNS):
        end = min(begin + _COLUMNS, len(a))
        part = np.abs(a[begin:, begin:end] if lower else a[begin:end, begin:].T)
        part = np.tril(part).astype(float)
        sums[begin:] += part.sum(axis=1)
        sums[begin:end] += part.sum(axis=0) - part.diagonal()
    return float(sums.max(initial=0))


def inverse_norm(solve: Callable[[Array], object], n: int, dtype: DType) -> float:
    """A lower bound on the 1-norm of a hermitian matrix's inverse, mostly close to it.

    Parameters
    ----------
    solve : callable
        Overwrites a vector by the solution that belongs to it; it is called at most 12 times.
    """

    def solved(right: Array) -> Array:
        x = np.array(right, dtype)
        solve(x)
        return x

    x = solved(np.full(n, 1 / n))
    found = float(np.abs(x).sum())
    if n == 1:
        return found
    signs, place = _signs(x), -1
    for _ in range(5):
        sizes = np.abs(solved(signs))
        best = int(sizes.argmax())
        if place >= 0 and sizes[place] >= sizes[best]:
            break
        place = best
        x = solved(np.arange(n) == place)
        size, before = float(np.abs(x).sum()), signs
        signs = _signs(x)
        if size <= found or np.array_equal(signs, before):
            found = max(size, found)
            break
        found = size
    # One that the steps above don't mistake: its elements alternate, and grow.
    trial = solved((1 + np.arange(n) / (n - 1)) * np.where(np.arange(n) % 2, -1, 1))
    return max(found, 2 * float(np.abs(trial).sum()) / (3 * n))


def _signs(x: Array) -> Array:
    sizes = np.abs(x)
    return np.where(sizes > 0, x / np.where(sizes > 0, sizes, 1), 1)


def warn_of_condition(bound: float, dtype: DType) -> None:
    """Warns if the condition number is at least that of a matrix that rounding makes singular."""
    if bound * float(np.finfo(dtype).eps) > 1:
        warnings.warn(
            f"an ill-conditioned matrix: its condition number is at least {bound:.0e}, so that "
            "the result may not be accurate",
            LinAlgWarning,
            stacklevel=4,  # the caller of solve(), around which mapped files are checked
        )
