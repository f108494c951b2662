# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/refinement.py: solves in single precision, corrected in double.
"""Iterative refinement: corrections in single precision until the residual in double is small."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..engine import Engine
from ..errors import InvalidArgument, LinAlgWarning
from .chunks import Chunks
from .distributed import Distributed, End, Progress, Storage, Watch, finish
from .matrices import Csr

Array = npt.NDArray[Any]

#: By how much a correction is to reduce the residual before double precision replaces it: as in
#: Clark et al., Comput. Phys. Commun. 181 (2010). Deeper ones lose the direction to rounding.
_REDUCTION = 0.1
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
                storage = replace(
                    self._storage, precondition=self._storage.precondition.divided(self._scale)
                )
                self._single = Distributed(self._engine, reduced, inverse, storage)
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
        chunks = Chunks(right.shape[0])
        try:
            begin = self._engine.core.now()
            found = self._solve(_Run(self._double, right, x, end, chunks), watch, progress)
            found["seconds"] = (self._engine.core.now() - begin) / 1e9
            return found
        finally:
            chunks.close()

    def _solve(self, run: _Run, watch: Watch, progress: Progress) -> dict[str, Any]:
        if self._single is not None:
            why_not = self._refine(run, _Corrections(self._single, run, self._scale, self._dtype),
                                   watch, progress)  # fmt: skip
        else:
            why_not = self._why_not
        found = run.told()
        if why_not and found["reason"] != "converged":
            if np.isfinite(run.norms).all():
                said = f"single precision isn't enough ({why_not}): the solve goes on in double"
                warnings.warn(said, LinAlgWarning, stacklevel=5)
            found = self._go_on(run, found, watch, progress)
        return found

    def _refine(
        self, run: _Run, corrections: _Corrections, watch: Watch, progress: Progress
    ) -> str:
        """Corrects until the end; returns why single precision is of no more use, if it isn't."""
        while not run.is_over and np.isfinite(run.norms).all():
            told = corrections.correct(watch, progress)
            if told:
                return f"a correction ended as {told!r}"
        return "" if np.isfinite(run.norms).all() else "the residual isn't finite"

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
        told["conditions"] = np.maximum(told["conditions"], run.conditions).tolist()
        told["iterations"] += made
        return told | {"precision": str(run.right.dtype)}


class _Corrections:
    """Conjugate gradients in single precision, whose residual is replaced now and then.

    They solve for right-hand sides of norm 1; their direction outlives each replacement.
    """

    def __init__(self, single: Distributed, run: _Run, scale: float, dtype: np.dtype[Any]) -> None:
        self._single, self._run = single, run
        self._sizes = np.where(run.norms > 0, run.norms, 1.0)
        self._lengths = self._sizes / scale
        self._right = np.empty(run.left.shape, dtype)
        self._trial = np.empty_like(run.x)
        self._step = np.zeros(run.left.shape, dtype)
        self._solve: _core.SparseSolve | None = None

    def correct(self, watch: Watch, progress: Progress) -> str:
        """Corrects x once; where x is no better, it stays, and the reason is returned."""
        run = self._run
        active = run.norms > run.tolerances
        run.chunks.each(self._divide)
        if not active.all():
            self._right[:, ~active] = 0
        wanted = (run.tolerances[active] / run.norms[active]).min() * _LEAST_PROGRESS
        solve = self._begin(max(float(wanted), _REDUCTION), run.most_of_a_correction)
        made = run.iterations
        told = finish(
            solve, self._step,
            None if watch is None else lambda step: watch(run.shaped(self._corrected().copy())),
            None if progress is None else lambda count: progress(made + count),
        )  # fmt: skip
        old = run.x
        is_taken = run.accept(self._corrected(), told, self._sizes, active)
        if is_taken:
            self._trial = old
        return "" if is_taken else str(told["reason"])

    def _begin(self, rtol: float, limit: int) -> _core.SparseSolve:
        if self._solve is None:
            end = End(rtol, 0.0, limit)
            self._solve = self._single.begin(self._right, self._step, end, True, False)
        else:
            self._step.fill(0)
            self._solve.resume(rtol, limit)
        return self._solve

    def _divide(self, rows: slice) -> None:
        np.divide(
            self._run.left[rows], self._sizes, out=self._right[rows], casting="same_kind"
        )  # fmt: skip

    def _corrected(self) -> Array:
        """x and the step so far, until the next call."""

        def add(rows: slice) -> None:
            np.multiply(self._step[rows], self._lengths, out=self._trial[rows])
            self._trial[rows] += self._run.x[rows]

        self._run.chunks.each(add)
        return self._trial


class _Run:
    """One solve: x and its residual in double, by columns."""

    def __init__(
        self, double: Distributed, right: Array, x: Array, end: End, chunks: Chunks
    ) -> None:
        self.double, self.right, self.out, self.end, self.chunks = double, right, x, end, chunks
        self.limit = end.limit if end.limit >= 0 else 10 * right.shape[0]
        self._sides = right.reshape(right.shape[0], -1)
        self.x = x.reshape(self._sides.shape).copy()
        self.tolerances = np.maximum(end.rtol * chunks.norms(self._sides), end.atol)
        self.iterations = 0
        self.left = self._sides
        self._spare = np.empty_like(self.x)
        if self.x.any():
            self.left = self._residual(self.x, np.empty_like(self.x))
        self.norms = chunks.norms(self.left)
        self.history = [self.norms]
        self.conditions = np.ones_like(self.norms)

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
        left = self._residual(x, self._spare)
        norms = self.chunks.norms(left)
        self.iterations += told["iterations"]
        self.conditions = np.maximum(self.conditions, told["conditions"])
        rows = np.asarray(told["residuals"], float).reshape(-1, sizes.size)
        self.history.extend(rows[1:] * sizes)
        is_better = (norms[active] <= _LEAST_PROGRESS * self.norms[active]).all()
        if not is_better and self.iterations < self.limit:
            return False
        self._spare = np.empty_like(x) if self.left is self._sides else self.left
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
            "conditions": self.conditions.tolist(),
            "precision": "mixed",
        }

    def _residual(self, x: Array, out: Array) -> Array:
        left = self.double.multiply(x, out)

        def subtract(rows: slice) -> None:
            np.subtract(self._sides[rows], left[rows], out=left[rows])

        self.chunks.each(subtract)
        return left


def _largest(values: Array) -> float:
    largest = float(np.abs(values).max(initial=0.0))
    return largest if 0 < largest < np.inf else 1.0
