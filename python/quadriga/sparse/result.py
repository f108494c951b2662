# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/result.py: the result of a solve: x, and how it was found.
"""Results of solvers, with the reason why the iteration ended."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LinAlgWarning

_SAID = {
    "not_positive_definite": "A isn't positive definite: p^H A p <= 0",
    "indefinite_preconditioner": "M isn't positive definite: r^H M r <= 0",
    "diverged": "A is singular, or nearly so: the residual has grown 1e16 times",
    "not_finite": "there are infinities or NaNs in A, M, b, x0 or their products",
}


def warn_of(reason: str, iterations: int, stacklevel: int) -> None:
    """Of a breakdown."""
    said = f"{_SAID[reason]}, after {iterations} iterations"
    warnings.warn(said, LinAlgWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class Result:
    """A solution and how it was found.

    Attributes
    ----------
    x : ndarray
        The last iterate, even if the solve failed.
    reason : str
        ``"converged"``: ``norm(b - A @ x)``, recomputed, meets the tolerance; ``"iterations"``:
        the limit was reached; ``"stagnated"``: rounding keeps the residual above the tolerance;
        ``"not_positive_definite"``, ``"indefinite_preconditioner"``, ``"diverged"``,
        ``"not_finite"``.
    iterations : int
        With several right-hand sides, their maximum.
    residual, tolerance : float or ndarray
        ``norm(b - A @ x)``, recomputed, and its limit; for each right-hand side.
    condition : float or ndarray
        An estimate from below of the condition number of M A, for each right-hand side, by the
        coefficients of the iterations (Lanczos); 1 without iterations.
    residuals : ndarray
        Norms by the recurrence, before the first iteration and after each; of shape (iterations +
        1,), or (iterations + 1, k) for k right-hand sides.
    seconds, setup_seconds : float
        Of this solve; of checking, partitioning and storing the matrix before, and of recording
        iterations where that is done ahead.
    overlap : float or None
        The fraction of the possible overlap of copies and kernels that the devices reached during
        the solve, 0 to 1; other work of the engine counts, too. None where nothing is copied while
        devices compute: on cores, on one device that holds all, and in recorded iterations.
    precision : str
        What the iterations computed in: the name of the solver's type, or ``"mixed"``.
    method : str
        How the last iteration was arranged: ``"classic_cg"``, also where classic iterations had to
        go on with what others began, ``"single_reduction_cg"`` or ``"pipelined_cg"``.
    replacements : int
        How often residuals were computed anew on the way, by methods other than classic.
    """

    x: npt.NDArray[Any]
    reason: str
    iterations: int
    residual: float | npt.NDArray[np.float64]
    tolerance: float | npt.NDArray[np.float64]
    condition: float | npt.NDArray[np.float64]
    residuals: npt.NDArray[np.float64]
    seconds: float
    setup_seconds: float
    overlap: float | None
    precision: str
    method: str
    replacements: int

    @property
    def info(self) -> int:
        """Like SciPy's: 0: converged; > 0: iterations without convergence; -1: breakdown."""
        if self.reason == "converged":
            return 0
        return -1 if self.reason in _SAID else max(1, self.iterations)

    def warn(self, stacklevel: int) -> None:
        """Warn of a breakdown, for callers that get `info` alone."""
        if self.reason in _SAID:
            warn_of(self.reason, self.iterations, stacklevel + 1)
