# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/info.py: info and completion.
"""What is here, and completion for shells."""

from __future__ import annotations

import json
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from .. import __version__, _core
from ..errors import InvalidArgument
from ..gpus import nvidia_gpus
from ..machine import Machine, Node, host_nodes
from ..policy import policies
from ..settings import config, settings, show_config
from . import machine_text


@click.command()
@click.option("--devices", help="Describe these devices instead of the configured ones.")
@click.option(
    "--spill",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With this spill file, whose disk is measured, instead of the configured one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(devices: str | None, spill: Path | None, as_json: bool) -> None:
    """Show version, devices, links, policies and settings."""
    wanted = devices or config["devices"]
    try:
        machine = _with_spill(Machine.parse(wanted), spill or config["spill"])
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
            "policies": policies(),
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
        ["policies", *(f"  {name:<16} {about}" for name, about in policies().items())],
    ]
    for lines in parts:
        if lines:
            click.echo("\n" + "\n".join(lines))
    click.echo()
    show_config()


def _with_spill(machine: Machine, file: str | Path) -> Machine:
    """As an engine has it: cores alone have the file as their memory."""
    has_memory = any(device.memory_bytes for device in machine.devices)
    return machine.with_spill(file) if file and has_memory else machine


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
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script with which SHELL (bash, zsh or fish) completes quadriga's commands.

    For example: quadriga completion bash > ~/.local/share/bash-completion/completions/quadriga
    """
    from .main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "quadriga", "_QUADRIGA_COMPLETE").source())
