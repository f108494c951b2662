# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/refinement.py: solves in single precision, corrected in double.
"""Iterative refinement: corrections in single precision until the residual in double is small."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine import Engine
from ..errors import InvalidArgument, LinAlgWarning
from .distributed import Distributed, End, Progress, Storage, Watch
from .matrices import Csr

Array = npt.NDArray[Any]

#: By how much a correction is to reduce the residual: half of single precision's digits, which
#: conjugate gradients reach unless A is so ill-conditioned that refinement doesn't pay.
_REDUCTION = float(np.finfo(np.float32).eps) ** 0.5
#: A correction that leaves more of the residual than this is no progress.
_LEAST_PROGRESS = 0.5


class Refined:
    """A matrix in double and in single precision, and solves by both.

    The matrix in single precision is A divided by its largest element, so that its elements are in
    range. Where it is refused or corrections fail, solves go on in double and warn.
    """

    def __init__(
        self, engine: Engine, double: Distributed, matrix: Csr, diagonal: Array | None,
        storage: Storage,
    ) -> None:  # fmt: skip
        if matrix.dtype.char in "fF":
            raise InvalidArgument(
                f"precision is 'mixed', and A is {matrix.dtype}; expected float64 or complex128"
            )
        self._engine, self._double, self._storage = engine, double, storage
        self._dtype = np.dtype(np.complex64 if matrix.dtype.kind == "c" else np.float32)
        self._single: Distributed | None = None
        self._why_not = ""
        self.update(matrix, diagonal)

    def update(self, matrix: Csr, diagonal: Array | None) -> None:
        """Take new values at the same places."""
        self._scale = _largest(matrix.values)
        reduced = Csr(matrix.shape, matrix.offsets, matrix.columns, self._reduced(matrix.values))
        inverse = None if diagonal is None else self._reduced(diagonal)
        try:
            if self._single is None:
                self._single = Distributed(self._engine, reduced, inverse, self._storage)
            else:
                self._single.update(reduced, inverse)
        except InvalidArgument as error:
            self._single, self._why_not = None, str(error)

    def _reduced(self, values: Array) -> Array:
        # Where values aren't finite neither are the results, and the solve says so.
        with np.errstate(invalid="ignore", under="ignore"):
            return np.ascontiguousarray(values / _largest(values), self._dtype)

    def solve(
        self, right: Array, x: Array, end: End, watch: Watch, progress: Progress
    ) -> dict[str, Any]:
        """As `Distributed.iterate`, from any x; also tells the precision."""
        begin = self._engine.core.now()
        run = _Run(self._double, right, x, end)
        if self._single is not None:
            why_not = self._refine(run, self._single, watch, progress)
        else:
            why_not = self._why_not
        found = run.told()
        if why_not and found["reason"] != "converged":
            if np.isfinite(run.norms).all():
                said = f"single precision isn't enough ({why_not}): the solve goes on in double"
                warnings.warn(said, LinAlgWarning, stacklevel=3)
            found = self._go_on(run, found, watch, progress)
        found["seconds"] = (self._engine.core.now() - begin) / 1e9
        return found

    def _refine(self, run: _Run, single: Distributed, watch: Watch, progress: Progress) -> str:
        """Corrects until the end; returns why single precision is of no more use, if it isn't."""
        while not run.is_over and np.isfinite(run.norms).all():
            told = self._correct(run, single, watch, progress)
            if told:
                return f"a correction ended as {told!r}"
        return "" if np.isfinite(run.norms).all() else "the residual isn't finite"

    def _correct(self, run: _Run, single: Distributed, watch: Watch, progress: Progress) -> str:
        """Corrects x once; where x is no better, it stays, and the reason is returned."""
        active = run.norms > run.tolerances
        sizes = np.where(active, run.norms, 1.0)
        right = np.ascontiguousarray(np.where(active, run.left / sizes, 0), self._dtype)
        wanted = (run.tolerances[active] / run.norms[active]).min() * _LEAST_PROGRESS
        until = End(max(float(wanted), _REDUCTION), 0.0, run.most_of_a_correction)
        made = run.iterations

        def corrected(step: Array) -> Array:
            x: Array = run.x + step.astype(run.x.dtype) * (sizes / self._scale)
            return x

        def shown(step: Array) -> None:
            if watch is not None:
                watch(run.shaped(corrected(step)))

        step = np.zeros_like(right)
        told = single.iterate(
            right, step, until, True, shown if watch is not None else None,
            None if progress is None else lambda count: progress(made + count),
        )  # fmt: skip
        return "" if run.accept(corrected(step), told, sizes, active) else str(told["reason"])

    def _go_on(
        self, run: _Run, found: dict[str, Any], watch: Watch, progress: Progress
    ) -> dict[str, Any]:
        """In double, from where single precision left off."""
        made = run.iterations
        end = End(run.end.rtol, run.end.atol, run.limit - made)
        np.copyto(run.out, run.shaped(run.x))
        told = self._double.iterate(
            run.right, run.out, end, False, watch,
            None if progress is None else lambda count: progress(made + count),
        )  # fmt: skip
        told["residuals"] = [*found["residuals"], *told["residuals"][run.norms.size :]]
        told["iterations"] += made
        return told | {"precision": str(run.right.dtype)}


class _Run:
    """One solve: x and its residual in double, by columns."""

    def __init__(self, double: Distributed, right: Array, x: Array, end: End) -> None:
        self.double, self.right, self.out, self.end = double, right, x, end
        self.limit = end.limit if end.limit >= 0 else 10 * right.shape[0]
        self._sides = right.reshape(right.shape[0], -1)
        self.x = x.reshape(self._sides.shape).copy()
        self.tolerances = np.maximum(end.rtol * _norms(self._sides), end.atol)
        self.iterations = 0
        self.left, self.norms = self._residual(self.x)
        self.history = [self.norms]

    @property
    def is_over(self) -> bool:
        """The tolerances are met, or the limit is."""
        return bool((self.norms <= self.tolerances).all()) or self.iterations >= self.limit

    @property
    def most_of_a_correction(self) -> int:
        """Iterations: the order, after which exact ones end, and double is left its half."""
        half = (self.limit - self.iterations + 1) // 2
        return min(len(self.right), half)

    def shaped(self, columns: Array) -> Array:
        """As the caller's x is shaped."""
        return np.ascontiguousarray(columns).reshape(self.right.shape)

    def accept(
        self, x: Array, told: dict[str, Any], sizes: Array, active: npt.NDArray[np.bool_]
    ) -> bool:
        """Take a corrected x, unless it is no better and iterations would have been left."""
        left, norms = self._residual(x)
        self.iterations += told["iterations"]
        rows = np.asarray(told["residuals"], float).reshape(-1, sizes.size)
        self.history.extend(rows[1:] * sizes)
        is_better = (norms[active] <= _LEAST_PROGRESS * self.norms[active]).all()
        if not is_better and self.iterations < self.limit:
            return False
        self.x, self.left, self.norms = x, left, norms
        return True

    def told(self) -> dict[str, Any]:
        """How it ended, as the extension tells it; x is in its place."""
        np.copyto(self.out, self.shaped(self.x))
        met = bool((self.norms <= self.tolerances).all())
        return {
            "reason": "converged" if met else "iterations",
            "iterations": self.iterations,
            "true_residuals": self.norms.tolist(),
            "tolerances": self.tolerances.tolist(),
            "residuals": np.concatenate(self.history).tolist(),
            "precision": "mixed",
        }

    def _residual(self, x: Array) -> tuple[Array, npt.NDArray[np.float64]]:
        left: Array = self._sides - (self.double.multiply(x) if x.any() else 0)
        return left, _norms(left)


def _norms(columns: Array) -> npt.NDArray[np.float64]:
    return np.asarray(np.linalg.norm(columns, axis=0), float)


def _largest(values: Array) -> float:
    largest = float(np.abs(values).max(initial=0.0))
    return largest if 0 < largest < np.inf else 1.0
