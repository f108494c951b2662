# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/estimates.py: time, traffic and memory of a call before it is made.
"""Time, traffic and memory of calls before they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _core
from ..arguments import whole
from ..engine import Engine
from ..errors import Error, InvalidArgument, TooLarge
from ..machine import Machine
from ..typing import Progress
from .arrays import check_type, core_type
from .run import start

Operation = Literal["matmul", "cholesky", "cho_solve"]
_KINDS = {"matmul": 0, "cholesky": 1, "cho_solve": 2}


@dataclass(frozen=True)
class Estimate:
    """The predicted cost of a call on an engine's devices.

    Attributes
    ----------
    seconds, bound_seconds : float
        The time by the virtual clock, and a lower bound for every schedule.
    host_bytes : float
        Bytes moved between the host and devices, both ways.
    links : dict of str to float
        Bytes over each link, by name.
    device_bytes : dict of str to int
        Peak use of each device's memory, by name.
    buffer_bytes : int
        Peak use of host buffers; of the spill file where cores alone compute. Elsewhere the file is
        among `device_bytes` and `links`, as ``"spill"``.
    matrix_bytes : int
        Memory of the caller's matrices.
    tile, tile_cols : int
        Rows and columns of the largest tile; of a product, of its result.
    tasks : int
        Number of tasks.
    extrapolated_from : list of int
        Numbers of tasks of the smaller programs that were simulated instead; empty if the call
        itself was simulated.
    seconds_uncertainty, bytes_uncertainty : float
        Relative uncertainty of `seconds`, and of `host_bytes` and `links`; 0 if the call itself
        was simulated.
    """

    seconds: float
    bound_seconds: float
    host_bytes: float
    links: dict[str, float]
    device_bytes: dict[str, int]
    buffer_bytes: int
    matrix_bytes: int
    tile: int
    tile_cols: int
    tasks: int
    extrapolated_from: list[int]
    seconds_uncertainty: float
    bytes_uncertainty: float

    def as_dict(self) -> dict[str, Any]:
        """The same as a plain dictionary, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        same = self.tile == self.tile_cols
        tiles = f"{self.tile} x {self.tile}" if same else f"up to {self.tile} x {self.tile_cols}"
        least = _core.format_seconds(self.bound_seconds)
        lines = [
            f"time             {_core.format_seconds(self.seconds)}"
            f"{_percent(self.seconds_uncertainty)} (at least {least})",
            f"moved            {_core.format_bytes(self.host_bytes)}"
            f"{_percent(self.bytes_uncertainty)} between host and devices",
            *(
                f"memory           {_core.format_bytes(size)} on {name}"
                for name, size in self.device_bytes.items()
            ),
            f"host buffers     {_core.format_bytes(self.buffer_bytes)}",
            f"matrices         {_core.format_bytes(self.matrix_bytes)}",
            f"tiles            {tiles}, {self.tasks} tasks",
            f"method           {self._method()}",
        ]
        return "\n".join(lines)

    def _method(self) -> str:
        if not self.extrapolated_from:
            return "all tasks simulated by the virtual clock"
        *first, last = map(str, self.extrapolated_from)
        return (
            f"extrapolated from simulated programs of {', '.join(first)} and {last} tasks on "
            "machines scaled in proportion"
        )


def _percent(uncertainty: float) -> str:
    return f" ± {100 * uncertainty:.0f} %" if uncertainty else ""


def estimate(
    operation: Operation,
    *sizes: int,
    dtype: npt.DTypeLike = float,
    from_source: bool = False,
    accumulate: bool = False,
    tile: int | None = None,
    reproducible: bool | None = None,
    engine: Engine | None = None,
    devices: str | Machine | None = None,
) -> Estimate:
    """Predict time, traffic and memory of a call by simulating its tasks without data.

    Calls of more than 20,000 tasks are extrapolated from three smaller programs on machines scaled
    in proportion; the result gives its uncertainty.

    Parameters
    ----------
    operation : {"matmul", "cholesky", "cho_solve"}
    *sizes : int
        Of matmul: rows and columns of the product, and the inner size; of cholesky: the order; of
        cho_solve: the order and the number of right-hand sides (it includes the factorization).
    dtype : dtype
        As for the call's arrays; integers stand for float64.
    from_source : bool
        Whether the matrix of a factorization is a source.
    accumulate : bool
        Whether a product is added to the content of `out`.
    tile, reproducible, engine, devices
        See `quadriga.linalg`.

    Returns
    -------
    Estimate

    Raises
    ------
    InvalidArgument
        If operation, sizes or dtype aren't accepted.
    TooLarge
        If the call would raise it, or for matrices of 1 EiB or more.

    Examples
    --------
    >>> from quadriga import linalg
    >>> linalg.estimate("cholesky", 4096, devices="emulated:2,memory=64MiB").matrix_bytes
    134217728
    """
    problem = _problem(operation, sizes, dtype, from_source, accumulate)
    with start("estimate", engine, devices, tile, None, reproducible=reproducible) as call:
        with _countable(operation, sizes):
            found = _core.estimate(call.core, problem, call.options())
        return _estimate(found, call.engine)


def simulate(
    operation: Operation,
    *sizes: int,
    engine: Engine,
    dtype: npt.DTypeLike = float,
    from_source: bool = False,
    accumulate: bool = False,
    tile: int | None = None,
    reproducible: bool | None = None,
    progress: Progress = None,
) -> Estimate:
    """Run all tasks of a call without data, by the virtual clock, on the machine of an engine.

    Nothing is extrapolated, and kernel times are those of the machine's description alone. The
    engine's counters and trace are those of the run.

    Parameters
    ----------
    operation, *sizes, dtype, from_source, accumulate
        As for `estimate`.
    engine : Engine
        A new one with ``virtual_clock=True, compute=False``.
    tile, reproducible, progress
        See `quadriga.linalg`.

    Returns
    -------
    Estimate

    Raises
    ------
    InvalidArgument
        If operation, sizes or dtype aren't accepted, the engine is another one, or its machine's
        description lacks a kernel of the call.
    TooLarge
        If the call would raise it, or for matrices of 1 EiB or more.

    Examples
    --------
    >>> import quadriga
    >>> from quadriga import linalg
    >>> devices = "machine=machines/h200x4.json:2,memory=8GiB"
    >>> engine = quadriga.Engine(devices, virtual_clock=True, compute=False)  # doctest: +SKIP
    >>> print(linalg.simulate("cholesky", 65536, engine=engine))  # doctest: +SKIP
    """
    problem = _problem(operation, sizes, dtype, from_source, accumulate)
    with start("simulate", engine, None, tile, progress, reproducible=reproducible) as call:
        with _countable(operation, sizes):
            found = _core.simulate(call.core, problem, call.options())
        return _estimate(found, call.engine)


def flops(operation: Operation, *sizes: int, dtype: npt.DTypeLike = float) -> float:
    """Floating-point operations of a call; of complex numbers four times as many."""
    _problem(operation, sizes, dtype, False, False)
    m, n, k = (*map(float, sizes), 0.0, 0.0)[:3]
    real = {"matmul": 2 * m * n * k, "cholesky": m**3 / 3, "cho_solve": m**3 / 3 + 2 * m * m * n}
    return real[operation] * (4 if np.dtype(dtype).kind == "c" else 1)


def _problem(
    operation: str,
    sizes: tuple[int, ...],
    dtype: npt.DTypeLike,
    from_source: bool,
    accumulate: bool,
) -> _core.Problem:
    if operation not in _KINDS:
        raise InvalidArgument(f"operation {operation!r}: expected one of {', '.join(_KINDS)}")
    needed = {"matmul": 3, "cholesky": 1, "cho_solve": 2}[operation]
    if len(sizes) != needed:
        expected = "1 size" if needed == 1 else f"{needed} sizes"
        raise InvalidArgument(f"{operation}: expected {expected}, got {len(sizes)}")
    kind = np.dtype(dtype)
    check_type(kind, "dtype")
    if kind.char not in "fdFD":
        kind = np.dtype(float)
    m, n, k = (*(whole("a size", size, 0, 2**40) for size in sizes), 0, 0)[:3]
    return _core.Problem(_KINDS[operation], m, n, k, core_type(kind), from_source, accumulate)


@contextmanager
def _countable(operation: str, sizes: tuple[int, ...]) -> Iterator[None]:
    try:
        yield
    except (MemoryError, ValueError) as error:
        if isinstance(error, Error):
            raise
        raise TooLarge(
            f"{operation} of {' x '.join(map(str, sizes))} has more tiles than memory can "
            "count: give a larger tile="
        ) from error


def _estimate(found: dict[str, Any], engine: Engine) -> Estimate:
    used = zip(engine.machine.devices, found.pop("device_bytes"), strict=False)
    in_use = {device.name: size for device, size in used if not device.is_bare_host}
    return Estimate(device_bytes=in_use, **found)
