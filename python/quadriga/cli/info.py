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
from ..gpus import nvidia_gpus
from ..machine import Machine, Node, host_nodes
from ..settings import config, settings, show_config
from . import machine_text
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
    # Another machine's description says itself what nodes it has.
    nodes = machine.nodes if machine.nodes or "machine=" in wanted else host_nodes()
    if as_json:
        described = json.loads(machine.to_json())
        described["nodes"] = [_node(node) for node in nodes]
        found = {
            "version": __version__,
            "machine": described,
            "cores": _core.usable_cores(),
            "memory_bytes": _core.usable_memory_bytes(),
            "settings": {row.key: {"value": row.value, "origin": row.origin} for row in rows},
        }
        click.echo(json.dumps(found))
        return
    click.echo(
        f"quadriga {__version__}, {machine_text.cores_text(_core.usable_cores())} and "
        f"{_core.format_bytes(_core.usable_memory_bytes())} usable"
    )
    parts = [
        machine_text.tree(machine, nodes),
        machine_text.table(machine),
        machine_text.copies(machine),
        _unused_gpus(machine, wanted),
    ]
    for lines in parts:
        if lines:
            click.echo("\n" + "\n".join(lines))
    click.echo()
    show_config()


def _node(node: Node) -> dict[str, object]:
    """A node as machine descriptions write it."""
    described = {"index": node.index, "memory": node.memory_bytes, "cores": node.cores}
    return described | ({"processors": node.processors} if node.processors else {})


def _unused_gpus(machine: Machine, wanted: str) -> list[str]:
    used = any(device.kind == "cuda" for device in machine.devices)
    gpus = [] if used or "machine=" in wanted else nvidia_gpus()
    if not gpus:
        return []
    return [f"GPUs not in use: {', '.join(gpus)} (quadriga doctor says why)"]


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
