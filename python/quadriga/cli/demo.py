# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/demo.py: the demo's options.
"""`quadriga demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import InvalidArgument
from .policy_name import policy_option


def _points(context: click.Context, parameter: click.Parameter, value: str) -> int | str:
    """A number of points, or all that needn't be held out."""
    return value if value == "all" else int(click.IntRange(1)(value, parameter, context))


@click.command()
@click.option("--points", default="8000", show_default=True, metavar="NUMBER|all",
              callback=_points,
              help="Training points; all: all but 1,000 held-out points.")  # fmt: skip
@click.option(
    "--devices", default="", help="A device list; by default two emulated devices of 128 MiB."
)
@click.option("-o", "--output", default="quadriga-demo", show_default=True,
              type=click.Path(file_okay=False, path_type=Path),
              help="Folder for the report and the picture.")  # fmt: skip
@click.option("--spill", type=click.Path(dir_okay=False, path_type=Path),
              help="A file, instead of host memory, for tiles that fit on no device.")  # fmt: skip
@click.option(
    "--length-scale", type=float, help="In metres; by default the maximum-likelihood estimate."
)
@click.option("--deviation", type=float, help="Standard deviation of the heights, in metres.")
@click.option("--nugget", type=float, help="Variance of the noise, in square metres.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@click.option("--tile", type=click.IntRange(1), help="Tile size, in rows and columns.")
@policy_option()
@click.option("--quick", is_flag=True, help="Use 2,000 points and small devices; takes seconds.")
@click.option("--json", is_flag=True, help="Print one JSON object.")
def demo(**options: Any) -> int:
    """Predict real terrain from a sample of its points, with a matrix larger than all devices."""
    try:
        from .. import demo as hook
    except ImportError as error:
        raise click.ClickException(
            f"the demo needs more packages ({error.name}): pip install 'quadriga[demo]'"
        ) from error
    try:
        return hook.run(hook.Options(**options))
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
