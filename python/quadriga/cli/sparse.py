# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/sparse.py: cg on Matrix Market and .npy files.
"""The command of the sparse solvers, from files to a file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import _core
from ..beside import target_of
from ..engine import Engine
from ..errors import Error, InvalidArgument
from ..sparse import Aggregation, Result, Solver
from ..sparse.matrices import common_type
from ..sparse.options import METHODS, SPLITS
from ..sparse.row_blocks import as_rows
from .files import need_apart, need_names, read, writing
from .policy_name import policy_option

_INPUT = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=_INPUT)
@click.option(
    "-o",
    "--output",
    required=True,
    type=_INPUT,
    help="The .npy file to write; it is renamed into place when complete.",
)
@click.option(
    "--precondition",
    type=click.Choice(["none", "jacobi", "block_jacobi", "chebyshev", "aggregation"]),
    default="none",
    show_default=True,
)
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="cg",
    show_default=True,
    help="How iterations are arranged; cg: by the machine's description.",
)
@click.option("--fast", is_flag=True, help="Let the number of devices decide that, and bits.")
@click.option(
    "--split",
    type=click.Choice(list(SPLITS)),
    default="rows",
    show_default=True,
    help="What needn't wait for other devices: whole rows, or own columns of all; then bits depend "
    "on their number.",
)
@click.option(
    "--degree",
    type=click.IntRange(1, 1000),
    help="Of the polynomials of chebyshev and aggregation. Default: 4 and 2.",
)
@click.option(
    "--near-null",
    type=_INPUT,
    help="An .npy file of vectors that A nearly maps to zero, as columns, for aggregation.",
)
@click.option(
    "--precision",
    type=click.Choice(["double", "mixed"]),
    default="double",
    show_default=True,
    help="mixed: iterations in single precision, corrected until the residual in double is met.",
)
@click.option(
    "--rtol",
    type=click.FloatRange(0),
    default=1e-5,
    show_default=True,
    help="Tolerance: |b - A x| <= max(rtol |b|, atol).",
)
@click.option("--atol", type=click.FloatRange(0), default=0.0, show_default=True)
@click.option("--maxiter", type=click.IntRange(0), help="Default: ten times the order of A.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["auto", "csr", "sell", "blocks"]),
    default="auto",
    show_default=True,
    help="How devices store rows.",
)
@click.option(
    "--spill",
    type=_INPUT,
    help="A file that holds the stored matrix instead of memory; removed in the end.",
)
@click.option(
    "--estimate",
    is_flag=True,
    help="Also predict a product, by the machine's description, and measure it.",
)
@click.option("--devices", help="A device list, such as 'cpu:2' or 'emulated:4,memory=64MiB'.")
@policy_option()
@click.option("--trace", type=_INPUT, help="Write a trace, for `quadriga report`.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def cg(
    a: Path,
    b: Path,
    output: Path,
    precondition: str,
    method: str,
    fast: bool,
    split: str,
    degree: int | None,
    near_null: Path | None,
    precision: str,
    rtol: float,
    atol: float,
    maxiter: int | None,
    layout: str,
    spill: Path | None,
    estimate: bool,
    devices: str | None,
    policy: str | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Solve A x = b by conjugate gradients with a sparse, hermitian, positive definite A.

    A is a Matrix Market file, an .npz file written by SciPy, or a folder with the arrays of CSR in
    indptr.npy, indices.npy and data.npy, which are mapped; b and x are .npy files. If the tolerance
    isn't met, the last x is written, and the exit status is 1.
    """
    outputs = {"--output": output, "--trace": trace, "--spill": spill}
    need_names(outputs)
    need_apart({"A": a, "B": b, "--near-null": near_null}, outputs)
    target_of(output)  # known before the work
    m = _preconditioner(precondition, degree, near_null)
    right = read(b)
    try:
        matrix: Any = as_rows(a)
    except InvalidArgument as error:
        raise type(error)(str(error) if str(a) in str(error) else f"{a}: {error}") from error
    if right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise InvalidArgument(
            f"{b}: shape {right.shape} doesn't fit A's {matrix.shape}: expected as many rows"
        )
    dtype = common_type(matrix.dtype, right.dtype)
    try:
        made = Engine(devices, policy=policy, trace=trace)
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    begin = time.perf_counter()
    with made as engine:
        mixed = None if precision == "double" else precision
        solver = Solver(
            matrix,
            method,
            m,
            fast=fast,
            split=split,
            format=layout,
            precision=mixed,
            spill=spill,
            dtype=dtype,
            engine=engine,
        )
        told: dict[str, Any] = _estimated(solver) if estimate else {}
        result = solver.solve(right, rtol=rtol, atol=atol, maxiter=maxiter)
        with writing(output, right.shape, dtype, False) as x:
            x[...] = result.x
        seconds = time.perf_counter() - begin
        if estimate:
            told["overlap"] = solver.measure_overlap()
            if not as_json:
                _tell_overlap(told)
        _tell(result, output, engine, seconds, told if as_json else None)
    if result.info != 0:
        raise Error(f"{output} holds the last x: {_why(result)}")


def _preconditioner(name: str, degree: int | None, near_null: Path | None) -> Any:
    """M, as solvers take it."""
    if name == "aggregation":
        chosen = {} if degree is None else {"degree": degree}
        return Aggregation(None if near_null is None else read(near_null), **chosen)
    if near_null is not None:
        raise click.UsageError("--near-null is that of --precondition aggregation")
    if degree is not None and name != "chebyshev":
        raise click.UsageError("--degree is that of --precondition chebyshev or aggregation")
    if degree is not None:
        return (name, degree)
    return None if name == "none" else name


def _why(result: Result) -> str:
    residual, tolerance = np.max(result.residual), np.max(result.tolerance)
    return (
        f"{result.reason} after {result.iterations} iterations, |b - A x| is {residual:.3g} and "
        f"should be at most {tolerance:.3g}"
    )


def _estimated(solver: Solver) -> dict[str, Any]:
    """What is known before the solve."""
    streamed = {key: solver.plan[key] for key in ("streamed_bytes", "streamed_seconds")}
    return {"estimates": solver.estimate()} | streamed


def _tell_overlap(told: dict[str, Any]) -> None:
    """Predictions for each way to exchange, then what was measured."""

    def times(found: dict[str, Any]) -> str:
        in_turn, overlapped = (
            _core.format_seconds(found[key]) for key in ("in_turn_seconds", "overlapped_seconds")
        )
        return f"in turn {in_turn}, overlapped {overlapped}"

    if told["streamed_bytes"] > 0:
        click.echo(
            f"{_core.format_bytes(int(told['streamed_bytes']))} don't fit the devices: an "
            f"iteration takes {_core.format_seconds(told['streamed_seconds'])} or more"
        )
    for way in told["estimates"]:
        what = "whole vector" if way["exchange"] == "whole" else "halo lists"
        how = "by way of the host" if way["route"] == "host" else "by direct routes"
        gain = f"up to {100 * way['largest_gain']:.1f} % by overlap"
        click.echo(f"product, {what} {how}: {gain} ({times(way)})")
    reached = told["overlap"]
    click.echo(f"product, reached: {100 * reached['gain']:.1f} % by overlap ({times(reached)})")


def _tell(
    result: Result, output: Path, engine: Engine, seconds: float, told: dict[str, Any] | None
) -> None:
    """For people, or with what else is told as JSON."""
    if told is None:
        click.echo(f"{output}: written in {_core.format_seconds(seconds)}")
        click.echo(
            f"{result.reason} after {result.iterations} iterations of {result.method}, "
            f"|b - A x| = {np.max(result.residual):.3g}; set-up "
            f"{_core.format_seconds(result.setup_seconds)}, solve "
            f"{_core.format_seconds(result.seconds)}"
        )
        click.echo(str(engine.counters()))
        return
    fields: dict[str, Any] = {"command": "cg", "output": str(output), "seconds": seconds}
    told_of = ("reason", "info", "iterations", "precision", "method", "replacements")
    fields |= {key: getattr(result, key) for key in told_of}
    fields |= {key: np.asarray(getattr(result, key)).tolist() for key in ("residual", "tolerance")}
    fields |= {"setup_seconds": result.setup_seconds, "solve_seconds": result.seconds}
    fields["overlap_reached"] = result.overlap
    fields["devices"] = [each.name for each in engine.machine.devices if not each.is_bare_host]
    fields |= told
    click.echo(json.dumps(fields | {"counters": engine.counters().as_dict()}))
