# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/doctor.py: doctor: what is used of this machine, and why the rest is not.
"""The command around `quadriga.doctor`."""

from __future__ import annotations

import dataclasses
import json

import click

from ..doctor import collect, judge, judge_pairs
from ..findings import State
from .main import DONE, UNAVAILABLE


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per finding.")
@click.option(
    "--pairs/--no-pairs",
    default=None,
    help="Try messages between processes, from each device to each other one (default: if there "
    "is a GPU).",
)
@click.option("--devices", help="For --pairs, such as emulated:2 (default: cuda).")
def doctor(as_json: bool, pairs: bool | None, devices: str | None) -> int:
    """Show which parts of this machine are used, and why others are not.

    Exit status: 0, or 3 if a GPU is not used.
    """
    facts = collect()
    findings = judge(facts)
    if pairs or (pairs is None and (devices is not None or not facts.cuda)):
        findings += judge_pairs(devices or "cuda")
    for finding in findings:
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(finding)))
            continue
        click.echo(f"{finding.part:<7} {finding.state.value:<7} {finding.text}")
        if finding.remedy:
            click.echo(f"{'':<16}{finding.remedy}")
    idle = any(
        finding.part.startswith(("GPU", "CUDA")) and finding.state is State.unused
        for finding in findings
    )
    return UNAVAILABLE if idle else DONE
