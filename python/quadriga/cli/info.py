# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/info.py: info, report and completion.
"""What is here, what a run did, and completion for shells."""

from __future__ import annotations

import json
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from .. import __version__, _core
from ..beside import write_beside
from ..errors import InvalidArgument
from ..machine import Machine
from ..settings import config, settings, show_config
from .files import need_apart


@click.command()
@click.option("--devices", help="Describe these instead of the configured ones.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(devices: str | None, as_json: bool) -> None:
    """Version, devices, links and settings."""
    wanted = devices or config["devices"]
    try:
        machine = Machine.host() if wanted in ("", "auto") else Machine.parse(wanted)
        rows = settings()
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        found = {
            "version": __version__,
            "machine": json.loads(machine.to_json()),
            "cores": _core.usable_cores(),
            "memory_bytes": _core.usable_memory_bytes(),
            "settings": {row.key: {"value": row.value, "origin": row.origin} for row in rows},
        }
        click.echo(json.dumps(found))
        return
    click.echo(
        f"quadriga {__version__}, {_cores(_core.usable_cores())} and "
        f"{_core.format_bytes(_core.usable_memory_bytes())} usable"
    )
    for device in machine.devices:
        memory = (
            _core.format_bytes(device.memory_bytes) if device.memory_bytes else "host memory"
        )  # fmt: skip
        cores = f", {_cores(device.cores)}" if device.cores else ""
        click.echo(f"  {device.name}: {device.kind}, {memory}{cores}")
    for link in machine.links:
        click.echo(f"  {link.name}: {_core.format_bytes_per_second(link.bytes_per_second)}")
    show_config()


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


@click.command()
@click.argument("trace", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="The HTML file; TRACE with .html by default.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
@click.option("--dot", type=click.Path(dir_okay=False, path_type=Path), help="Write the graph.")
@click.option("--perfetto", type=click.Path(dir_okay=False, path_type=Path),
              help="Write a trace for Perfetto, with rates and arrows.")  # fmt: skip
def report(
    trace: Path, output: Path | None, as_json: bool, dot: Path | None, perfetto: Path | None
) -> None:
    """Make an HTML report of a trace."""
    from .. import report as reports

    target = output or trace.with_suffix(".html")
    need_apart({"TRACE": trace}, {"--output": target, "--dot": dot, "--perfetto": perfetto})
    found = reports.write_report(trace, target)
    if dot is not None:
        write_beside(dot, reports.to_dot(found))
    if perfetto is not None:
        write_beside(perfetto, reports.to_perfetto(found))
    if as_json:
        click.echo(json.dumps({"output": str(target)} | reports.summary(found), default=str))
    else:
        click.echo(reports.summary_text(found))
        click.echo(f"{target}: written")


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a SHELL (bash, zsh or fish) complete quadriga's commands.

    As in: quadriga completion bash > ~/.local/share/bash-completion/completions/quadriga
    """
    from .main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "quadriga", "_QUADRIGA_COMPLETE").source())
