# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/codelets.py: operations with NumPy bodies, their operands, their running tasks.
"""Codelets in Python: a function of NumPy views, and how it touches each of them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from .blas import one_thread
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .data import Data, Place

ACCESSES: dict[str, _core.Access] = {
    "read": _core.Access.read,
    "write": _core.Access.write,
    "update": _core.Access.update,
    "commute": _core.Access.commute,
    "reduce": _core.Access.reduce,
}


class Cost(NamedTuple):
    """How long a task takes by a machine's table, for the virtual clock.

    The rate order**3/seconds is interpolated at `order`; the task takes volume/rate.
    """

    kernel: str
    order: float
    volume: float


class Operand(NamedTuple):
    """Data, and how a task touches it; made by `Data.read()` and its like."""

    data: Data
    access: str


class Codelet:
    """An operation with a NumPy body; made by `codelet`.

    Attributes
    ----------
    name : str
        As it stands in traces and errors.
    access : tuple of str
        One mode for each operand.
    body : callable
        The function; gets one NumPy view for each operand.
    """

    def __init__(
        self,
        body: Callable[..., Any],
        access: Sequence[str],
        *,
        name: str | None = None,
        host_only: bool = True,
        submits: bool = False,
        cost: Cost | None = None,
    ) -> None:
        unknown = [mode for mode in access if mode not in ACCESSES]
        if isinstance(access, str) or unknown:
            raise InvalidArgument(
                f"access {access!r}: expected a list of modes, each one of {', '.join(ACCESSES)}"
            )
        self.body = body
        self.access = tuple(access)
        self.name = name or str(getattr(body, "__name__", "codelet"))
        charged = (cost.kernel, cost.order, cost.volume) if cost else None
        self.core = _core.Codelet(
            self.name, [ACCESSES[mode] for mode in access], host_only, submits, charged
        )

    def __repr__(self) -> str:
        return f"<Codelet {self.name!r}({', '.join(self.access)})>"


def codelet(
    access: Sequence[str],
    *,
    name: str | None = None,
    host_only: bool = True,
    submits: bool = False,
    cost: Cost | None = None,
) -> Callable[[Callable[..., Any]], Codelet]:
    """Make a codelet of a function on NumPy arrays.

    Parameters
    ----------
    access : sequence of str
        How the function touches each operand: ``"read"``, ``"write"``, ``"update"`` (read and
        write), ``"commute"`` (an update whose order doesn't matter) or ``"reduce"``.
    name : str, optional
        As it stands in traces; the function's name by default.
    host_only : bool
        Whether it runs on the host's cores only. False: on emulated devices, too.
    submits : bool
        Whether the body submits tasks itself.
    cost : Cost, optional
        Its time by the machine's table, for the virtual clock.

    Returns
    -------
    callable
        A decorator that makes a `Codelet`.

    Notes
    -----
    Views are valid while the body runs; those of mode read can't be written. NumPy's and SciPy's
    BLAS run on one thread meanwhile, in the whole process. What the body raises comes back from
    `Engine.wait` and `Future.result` with its type and traceback.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> @quadriga.codelet(access=["read", "update"])
    ... def add(x, y):
    ...     y += x
    >>> with quadriga.Engine("cpu:1") as engine:
    ...     x, y = np.arange(3.0), np.ones(3)
    ...     _ = engine.submit(add, engine.data(x).read(), engine.data(y).update())
    ...     engine.wait()
    >>> y
    array([1., 2., 3.])
    """
    return lambda body: Codelet(
        body, access, name=name, host_only=host_only, submits=submits, cost=cost
    )


class Record:
    """A task from its submission to its end; keeps alive what its body needs."""

    __slots__ = ("codelet", "core", "exception", "number", "operands", "parameters", "value")

    def __init__(
        self,
        number: int,
        codelet: Codelet,
        operands: Sequence[Operand],
        parameters: Mapping[str, Any],
    ) -> None:
        self.number = number
        self.codelet = codelet
        # Not the data themselves, for those hold the engine, which holds this.
        self.operands: Sequence[tuple[Place, str]] = [(o.data.place, o.access) for o in operands]
        self.parameters = parameters
        self.core: _core.Future | None = None
        self.value: Any = None
        self.exception: BaseException | None = None

    def run(self, places: tuple[tuple[int, int], ...]) -> None:
        """Call the body on the operands where they are; called by the engine."""
        views = [
            place.view(address, ld, access)
            for (place, access), (address, ld) in zip(self.operands, places, strict=True)
        ]
        try:
            with one_thread:
                self.value = self.codelet.body(*views, **self.parameters)
        except BaseException as exception:
            self.exception = exception
            if any(
                place.array is None or address != place.array.ctypes.data
                for (place, _), (address, _) in zip(self.operands, places, strict=True)
            ):
                # Frames must not keep views of memory that the engine takes back.
                traceback.clear_frames(exception.__traceback__)
            raise

    def drop(self) -> None:
        """The task has ended: let its operands go."""
        self.operands = ()
        self.parameters = {}
