# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/calibration.py: a machine's description with all that plans follow from.
"""Measures links, kernels and what an operation costs, for one description."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from ..beside import target_of, write_beside
from ..errors import InvalidArgument
from ..machine import Machine
from ..settings import config
from . import measure, program
from .measure import Note, Row

_QUICK_ORDER = 1024
_TYPES = "sdcz"
_COPIES = ("h2d", "d2h", "both", "peer", "all-h2d", "all-d2h", "all-both", "runs-h2d", "runs-d2h")


def calibrate(
    output: str | os.PathLike[str],
    devices: str | None = None,
    *,
    types: str = "sd",
    most: int = 4096,
    repeat: int = 5,
    quick: bool = False,
    note: Note = lambda text: None,
) -> list[Row]:
    """Measure a machine, and write its description.

    Links are measured as by ``quadriga bench copies``; kernels of the linear algebra alone, and two
    or three at once, by tile size, with the median of several times; the host's time for an
    operation is that of one that does nothing.

    Parameters
    ----------
    output : path
        JSON file, for `QUADRIGA_MACHINE`, ``machine=FILE`` and ``quadriga simulate``.
    devices : str, optional
        A device list; by default the configured one.
    types : str
        Of the kernels: letters of "sdcz", as BLAS has them.
    most, repeat : int
        The largest order of a tile, and how often each is timed.
    quick : bool
        Fewer sizes of copies, tiles up to 1024, each timed once.
    note : callable
        Called with what was measured last.

    Returns
    -------
    list of dict
        The lines of the program that measures.

    Raises
    ------
    InvalidArgument, Unavailable
        If there are no such devices, or types.
    """
    if not types or set(types) - set(_TYPES):
        raise InvalidArgument(f"types {types!r}: expected letters of {_TYPES}")
    target = target_of(output)
    wanted = devices or config["devices"] or "auto"
    machine = Machine.parse(wanted)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        by_links, by_kernels = (Path(folder) / name for name in ("links.json", "kernels.json"))
        if any(each.memory_bytes for each in machine.devices):
            copies = measure.copies(
                _COPIES, devices=wanted, quick=quick, output=by_links, note=note
            )
            rows += copies
        words = ["--devices", wanted, "--types", types, "--description", by_kernels]
        words += ["--most", min(most, _QUICK_ORDER) if quick else most]
        words += ["--repeat", 1 if quick else repeat]
        for line in program.run(program.OURS, "calibrate", *words):
            note(f"calibrate: {len(rows) + 1} measured, last {line['case']}")
            rows.append(line)
        found = json.loads(by_kernels.read_text())
        if by_links.exists():
            found = _joined(json.loads(by_links.read_text()), found)
    text = json.dumps(found, indent=1)
    Machine.from_json(text)
    write_beside(target, text + "\n")
    return rows


def _joined(links: dict[str, Any], kernels: dict[str, Any]) -> dict[str, Any]:
    """Links of one description, kernels and what operations and messages cost of the other."""
    rates = {each["name"]: each.get("rates") for each in kernels["devices"]}
    devices = [each | {"rates": rates[each["name"]]} for each in links["devices"]]
    costs = {
        key: kernels[key] for key in ("kernels", "launch", "message", "planning") if key in kernels
    }
    return links | {"devices": devices} | costs
