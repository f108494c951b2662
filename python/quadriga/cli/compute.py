# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/compute.py: solve, cholesky and matmul on .npy files.
"""The commands of the linear algebra, from files to files."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import _core, linalg
from ..beside import target_of
from ..engine import Engine
from ..errors import InvalidArgument
from ..linalg.arrays import check_finite, check_type, common_type, lapack_type
from .files import need_apart, need_names, read, writing
from .policy_name import policy_option


@dataclass
class Where:
    """The options that all computing commands share."""

    output: Path
    devices: str | None
    policy: str | None
    tile: int | None
    trace: Path | None
    spill: Path | None
    host_memory: str | None
    as_json: bool
    estimate: bool

    def read(self, **inputs: Path) -> list[Any]:
        """The arrays in the inputs, whose place no output may take."""
        outputs = {"--output": self.output, "--trace": self.trace, "--spill": self.spill}
        need_names(outputs)
        need_apart({name.upper(): path for name, path in inputs.items()}, outputs)
        arrays = [read(path) for path in inputs.values()]
        if not self.estimate:
            target_of(self.output)  # known before the work
        return arrays

    @property
    def progress(self) -> bool:
        # A closed one is None.
        return sys.stderr is not None and sys.stderr.isatty() and not self.as_json

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """An engine on the devices asked for; a list that isn't understood is misuse."""
        try:
            made = Engine(
                self.devices,
                policy=self.policy,
                trace=self.trace if self.trace is not None and not self.estimate else None,
                spill=self.spill,
                host_memory=self.host_memory,
            )
        except InvalidArgument as error:
            raise click.UsageError(str(error)) from error
        with made as engine:
            yield engine


def _size(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Checks a size; the error names the option."""
    try:
        _core.parse_bytes(value or "0")
    except InvalidArgument as error:
        raise click.BadParameter(str(error)) from error
    return value


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """A failure of the matrix itself names its file."""
    try:
        yield
    except (np.linalg.LinAlgError, InvalidArgument) as error:
        raise type(error)(f"{path}: {error}") from error


def shared(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the shared options, which the command gets as `where`."""

    def command(
        output: Path | None,
        devices: str | None,
        policy: str | None,
        tile: int | None,
        trace: Path | None,
        spill: Path | None,
        host_memory: str | None,
        as_json: bool,
        estimate: bool,
        **own: Any,
    ) -> None:
        if output is None and not estimate:
            raise click.UsageError("Missing option '-o' / '--output' (only --estimate needs none).")
        output = output or Path(os.devnull)
        where = Where(output, devices, policy, tile, trace, spill, host_memory, as_json, estimate)
        function(where=where, **own)

    options = [
        click.option(
            "-o",
            "--output",
            type=click.Path(dir_okay=False, path_type=Path),
            help="The .npy file to write; it is renamed into place when complete.",
        ),
        click.option(
            "--devices", help="A device list, such as 'cpu:2' or 'emulated:4,memory=64MiB'."
        ),
        policy_option(),
        click.option("--tile", type=click.IntRange(1), help="Tile size, in rows and columns."),
        click.option(
            "--trace",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write a trace, for `quadriga report`.",
        ),
        click.option(
            "--spill",
            type=click.Path(dir_okay=False, path_type=Path),
            help="A file for tiles without a home that don't fit on the devices.",
        ),
        click.option(
            "--host-memory",
            callback=_size,
            help="Limit of host memory for such tiles, such as '2GiB'.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option(
            "--estimate",
            is_flag=True,
            help="Print time, traffic and memory without running the call.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    command.__doc__ = function.__doc__
    command.__name__ = function.__name__
    # Arguments and options of the command's own were attached to the function.
    command.__click_params__ += getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    return command


_INPUT = click.Path(dir_okay=False, path_type=Path)


@click.command()
@shared
@click.argument("a", type=_INPUT)
@click.argument("b", type=_INPUT)
@click.option("--check-symmetric/--no-check-symmetric", default=True, show_default=True,
              help="Reject an A that isn't hermitian, or use only its upper triangle.")  # fmt: skip
def solve(where: Where, a: Path, b: Path, check_symmetric: bool) -> None:
    """Solve A x = b with a hermitian, positive definite A; A, b and x are .npy files."""
    matrix, right = where.read(a=a, b=b)
    _need_square(a, matrix)
    if right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise InvalidArgument(
            f"{b}: shape {right.shape} doesn't fit A's {matrix.shape}: expected as many rows"
        )
    _need_numbers(b, right)
    dtype = common_type(matrix, right)
    with where.engine() as engine:
        if where.estimate:
            count = right.shape[1] if right.ndim == 2 else 1
            _show_estimate(where, engine, "cho_solve", (len(matrix), count), dtype)
            return
        _need_finite(a, matrix)
        _need_finite(b, right)
        with (
            _naming(a),
            _told(where, engine, "solve"),
            writing(where.output, right.shape, dtype, bool(right.flags.f_contiguous)) as x,
        ):
            x[...] = right
            linalg.solve(
                matrix, x, assume_a="pos", overwrite_b=True, check_finite=False,
                check_symmetric=check_symmetric, engine=engine, tile=where.tile,
                progress=where.progress,
            )  # fmt: skip


@click.command()
@shared
@click.argument("a", type=_INPUT)
@click.option(
    "--lower", is_flag=True, help="Compute the lower factor, A = L L^H, instead of the upper one."
)
@click.option("--check-symmetric", is_flag=True, help="Reject an A that isn't hermitian.")
def cholesky(where: Where, a: Path, lower: bool, check_symmetric: bool) -> None:
    """Factorize a hermitian, positive definite A = U^H U; A and U are .npy files."""
    (matrix,) = where.read(a=a)
    _need_square(a, matrix)
    dtype = lapack_type(matrix)
    with where.engine() as engine:
        if where.estimate:
            _show_estimate(where, engine, "cholesky", (len(matrix),), dtype)
            return
        _need_finite(a, matrix)
        with (
            _naming(a),
            _told(where, engine, "cholesky"),
            writing(where.output, matrix.shape, dtype, bool(matrix.flags.f_contiguous)) as factor,
        ):
            linalg.cholesky(
                matrix, lower=lower, out=factor, check_finite=False,
                check_symmetric=check_symmetric, engine=engine, tile=where.tile,
                progress=where.progress,
            )  # fmt: skip


@click.command()
@shared
@click.argument("a", type=_INPUT)
@click.argument("b", type=_INPUT)
@click.option("--trans-a", type=click.Choice(["N", "T", "C"]), default="N", show_default=True)
@click.option("--trans-b", type=click.Choice(["N", "T", "C"]), default="N", show_default=True)
def matmul(where: Where, a: Path, b: Path, trans_a: Any, trans_b: Any) -> None:
    """Multiply C = A B; A, B and C are .npy files of matrices or vectors, as in NumPy."""
    left, right = where.read(a=a, b=b)
    for path, each in ((a, left), (b, right)):
        _need_numbers(path, each)
        if each.ndim not in (1, 2):
            raise InvalidArgument(f"{path}: shape {each.shape}: expected a matrix or a vector")
    rows, k = _turned(left, trans_a, (1, len(left)))
    inner, cols = _turned(right, trans_b, (len(right), 1))
    if k != inner:
        raise InvalidArgument(
            f"A is {rows} x {k} ({a}) and B {inner} x {cols} ({b}): {k} isn't {inner}"
        )
    shape = (rows,) * (left.ndim - 1) + (cols,) * (right.ndim - 1)
    dtype = common_type(left, right)
    with where.engine() as engine:
        if where.estimate:
            _show_estimate(where, engine, "matmul", (rows, cols, k), dtype)
            return
        with _told(where, engine, "matmul"), writing(where.output, shape, dtype, False) as c:
            linalg.matmul(
                left, right, c, trans_a=trans_a, trans_b=trans_b,
                engine=engine, tile=where.tile, progress=where.progress,
            )  # fmt: skip


def _turned(array: np.ndarray[Any, Any], trans: str, of_vector: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns in the product; a vector's transpose is itself."""
    if array.ndim == 1:
        return of_vector
    rows, cols = array.shape if trans == "N" else array.shape[::-1]
    return rows, cols


def _need_numbers(path: Path, array: np.ndarray[Any, Any]) -> None:
    check_type(array.dtype, str(path))


def _need_finite(path: Path, array: np.ndarray[Any, Any]) -> None:
    try:
        check_finite(array, True)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}: {error}") from error


def _need_square(path: Path, matrix: np.ndarray[Any, Any]) -> None:
    _need_numbers(path, matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidArgument(f"{path}: shape {matrix.shape}: expected a square matrix")


@contextmanager
def _told(where: Where, engine: Engine, command: str) -> Iterator[None]:
    """Says what was done, once it is."""
    begin = time.perf_counter()
    yield
    seconds = time.perf_counter() - begin
    counters = engine.counters()
    if where.as_json:
        fields = {"command": command, "output": str(where.output), "seconds": seconds}
        devices = [each.name for each in engine.machine.devices if not each.is_bare_host]
        fields |= {"devices": devices, "policy": engine.policy}
        click.echo(json.dumps(fields | {"counters": counters.as_dict()}))
    else:
        click.echo(f"{where.output}: written in {_core.format_seconds(seconds)}")
        click.echo(str(counters))


def _show_estimate(
    where: Where, engine: Engine, operation: Any, sizes: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    found = linalg.estimate(operation, *sizes, dtype=dtype, tile=where.tile, engine=engine)
    if where.as_json:
        click.echo(json.dumps({"operation": operation} | found.as_dict()))
    else:
        click.echo(str(found))
