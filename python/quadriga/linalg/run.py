# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/run.py: where a call runs, what it keeps alive, how its progress is shown.
"""One call of the linear algebra."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from .. import _core
from ..arguments import flag
from ..defaults import default_engine
from ..engine import Engine
from ..errors import InvalidArgument, InvalidType, TaskFailed
from ..failures import raise_kept
from ..foreign import DeviceArray, await_stream
from ..machine import Machine
from ..settings import config
from ..typing import Progress
from .arrays import Input, matrix_of
from .sources import Source

# Calls that the library names in traces, as it does those of C++ programs.
_NAMED = {
    "matmul", "syrk", "herk", "cholesky", "cho_factor", "cho_solve", "solve_triangular",
    "inverse_diagonal", "load",
}  # fmt: skip


class Call:
    """A call's engine and options."""

    def __init__(
        self,
        engine: Engine,
        tile: int,
        reproducible: bool | None,
        report: Callable[[float], object] | None,
    ) -> None:
        self.engine = engine
        self.core = engine.core
        self._tile = tile
        self._reproducible = reproducible
        self._report = report

    def matrix(self, value: Input) -> _core.Matrix:
        """As the extension module takes it, wherever it lies."""
        if isinstance(value, DeviceArray) and value.size > 0:
            return matrix_of(value, self.core.device_of(value.address))
        return matrix_of(value)

    def options(self, *kept: Any, part: tuple[float, float] = (0.0, 1.0)) -> _core.CallOptions:
        """What the extension module takes.

        Parameters
        ----------
        *kept
            Arrays and sources that the work touches. Those on devices are waited for: what their
            owners have queued comes first.
        part : (float, float)
            Which part of the whole call's progress this work is.
        """
        for each in kept:
            if isinstance(each, DeviceArray):
                await_stream(self.core, each)
        report = self._report
        if report is None:
            return _core.CallOptions(self._tile, kept, None, self._reproducible)
        begin, end = part
        return _core.CallOptions(
            self._tile,
            kept,
            lambda done: report(begin + (end - begin) * done),
            self._reproducible,
        )


@contextmanager
def start(
    name: str,
    engine: Engine | None,
    devices: str | Machine | None,
    tile: int | None,
    progress: Progress,
    *inputs: Any,
    reproducible: bool | None = None,
) -> Iterator[Call]:
    """Runs the block's work; what a source raised comes back as it was raised.

    An engine made for `devices` ends with its last reference, which a factor may hold.
    """
    if engine is not None and devices is not None:
        raise InvalidArgument("give an engine or devices, not both")
    if engine is not None and not isinstance(engine, Engine):
        raise InvalidType(f"engine is {engine!r}; expected an Engine, or None")
    order = config["tile"] if tile is None else _order(tile)
    reproducible = flag("reproducible", reproducible)
    chosen = engine or (Engine(devices) if devices is not None else default_engine())
    # A factor solves on its engine after that was closed; its trace is written by then.
    is_named = name in _NAMED or not chosen._ending.is_due
    named = nullcontext() if is_named else chosen.section(name)
    with named, shown(name, progress) as report:
        try:
            yield Call(chosen, order, reproducible, report)
        except TaskFailed as error:
            number = getattr(error, "record", 0)
            for each in inputs:
                if isinstance(each, Source) and each.number == number and each.failure is not None:
                    # The engine holds the source, which must not hold what leads to the engine.
                    failure, each.failure = each.failure, None
                    raise_kept(failure)
            raise


def _order(tile: Any) -> int:
    try:
        order = operator.index(tile)
    except TypeError:
        raise InvalidType(
            f"tile is {tile!r}; expected a whole number of at least 1, or None"
        ) from None
    if not 1 <= order < 1 << 63:
        raise InvalidArgument(f"tile {order}: expected a whole number from 1 to 2**63 - 1, or None")
    return order


@contextmanager
def shown(name: str, progress: Progress) -> Iterator[Callable[[float], object] | None]:
    """What is to be called with the part that is done: a bar's, the caller's, or nothing."""
    if not progress:
        yield None
        return
    if callable(progress):
        yield progress
        return
    # Imported where it is needed: it takes longer than all the rest of the package.
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    console = Console(stderr=True)
    # Redrawn at each update: a drawing thread would survive a Ctrl-C while it starts.
    with Bar(*columns, TimeRemainingColumn(), console=console, auto_refresh=False) as bar:
        shown = bar.add_task(name, total=1.0)
        yield lambda done: bar.update(shown, completed=done, refresh=True)


def op_of(trans: Any, name: str = "trans") -> int:
    """SciPy's names of an operation on a matrix, as a number: 0 none, 1 transpose, 2 conjugate."""
    found = {"N": 0, "T": 1, "C": 2}.get(trans, trans) if isinstance(trans, str) else trans
    if found not in (0, 1, 2):
        raise InvalidArgument(f"{name} is {trans!r}; expected 0, 1, 2, 'N', 'T' or 'C'")
    return int(found)
