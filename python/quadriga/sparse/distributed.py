# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/distributed.py: a matrix in parts on the devices, its products and solves.
"""What the extension does with contiguous arrays in the matrix's own order and type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..engine import Engine
from .matrices import Csr
from .preconditioners import Preconditioner
from .row_blocks import RowBlocks, readable

Array = npt.NDArray[Any]
Watch = Callable[[Array], object] | None
Progress = Callable[[float], object] | None


@dataclass(frozen=True)
class Storage:
    """How a matrix is cut, stored and preconditioned, by the numbers of the extension."""

    layout: int
    precondition: Preconditioner
    parts: int
    recorded: bool | None
    exchange: int = 0
    route: int = 0
    overlap: bool | None = None
    #: A file that holds the parts; empty: they are in memory.
    spill: str = ""
    method: int = 0
    #: Whether the number of devices may decide bits.
    fast: bool = False
    #: Iterations are recorded when the matrix is stored, not by the first solves.
    records_ahead: bool = False
    #: Of a part's product, into what needs nothing of other parts and the rest.
    split: int = 0


@dataclass(frozen=True)
class End:
    """When iterations end: ``norm(b - A @ x) <= max(rtol * norm(b), atol)``, or after `limit`."""

    rtol: float
    atol: float
    #: -1: ten times the order.
    limit: int


def core_options(storage: Storage, diagonal: int) -> _core.SolverOptions:
    """As the extension takes them, but for the levels of M; with the address of its diagonal."""
    m = storage.precondition
    options = _core.SolverOptions(
        storage.layout, m.number, diagonal, m.inverse_rows, storage.parts, storage.recorded,
        storage.exchange, storage.route, storage.overlap, m.degree,
    )  # fmt: skip
    options.set_method(storage.method, storage.fast)
    options.set_split(storage.split)
    options.set_records_ahead(storage.records_ahead)
    if storage.spill:
        options.set_spill(storage.spill)
    return options


class Distributed:
    """Parts of a matrix on the devices of an engine."""

    def __init__(
        self, engine: Engine, matrix: Csr | RowBlocks, diagonal: Array | None, storage: Storage
    ) -> None:
        address = 0 if diagonal is None else diagonal.ctypes.data
        options = core_options(storage, address)
        used = storage.precondition.set(options, matrix.dtype)
        with readable(matrix) as rows:
            self._core = _core.SparseSolver(engine.core, rows, options, (matrix, diagonal, used))

    def update(self, matrix: Csr | RowBlocks, diagonal: Array | None) -> None:
        """Take new values at the same places; where these differ, nothing has changed."""
        address = 0 if diagonal is None else diagonal.ctypes.data
        with readable(matrix) as rows:
            self._core.update(rows, address, (matrix, diagonal))

    def plan(self) -> dict[str, Any]:
        """As `Solver.plan`."""
        return dict(self._core.plan())

    def measure_product(self, count: int, columns: int = 1, mode: int = 0) -> float:
        """Seconds of one of `count` products of vectors that stay on the devices."""
        return float(self._core.measure_product(count, columns, mode))

    def multiply(self, right: Array, out: Array | None = None) -> Array:
        """A times vectors of shape (n,) or (n, k)."""
        out = np.empty_like(right) if out is None else out
        columns = right.shape[1] if right.ndim == 2 else 1
        if columns > 0:
            self._core.multiply(right.ctypes.data, out.ctypes.data, columns, (right, out))
        return out

    def iterate(
        self, right: Array, x: Array, end: End, from_zero: bool, watch: Watch, progress: Progress
    ) -> dict[str, Any]:
        """Conjugate gradients from the `x` given, which they overwrite; tells how they ended.

        `watch` is called with x after each iteration, `progress` with their number now and then.
        """
        if right.ndim == 2 and right.shape[1] == 0:
            return dict(_NOTHING)
        return finish(self.begin(right, x, end, from_zero), x, watch, progress)

    def begin(
        self, right: Array, x: Array, end: End, from_zero: bool, checked: bool = True
    ) -> _core.SparseSolve:
        """A solve to `finish`; one that isn't `checked` ends as the recurrence says."""
        columns = right.shape[1] if right.ndim == 2 else 1
        return self._core.begin_cg(
            right.ctypes.data, x.ctypes.data, columns, end.rtol, end.atol, end.limit, from_zero,
            checked, (right, x),
        )  # fmt: skip


def finish(solve: _core.SparseSolve, x: Array, watch: Watch, progress: Progress) -> dict[str, Any]:
    """Run a solve of `Distributed.begin` to its end, as `Distributed.iterate` does."""
    if watch is not None:
        _step(solve, lambda: watch(x))
    return dict(solve.finish(progress))


#: What a solve without right-hand sides finds.
_NOTHING: dict[str, Any] = {
    "reason": "converged", "iterations": 0, "true_residuals": [], "tolerances": [],
    "residuals": [], "conditions": [], "seconds": 0.0, "method": "classic", "replacements": 0,
}  # fmt: skip


def _step(solve: Any, after: Callable[[], object]) -> None:
    over = False
    made = 0
    while not over:
        over = solve.advance(1)
        if solve.iterations() > made:
            made = solve.iterations()
            after()
