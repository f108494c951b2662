# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/findings.py: what `quadriga doctor` says of one part of a machine.
"""A finding, and how much it matters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How much a finding matters."""

    used = "used"
    absent = "absent"  # there is none, which is no fault
    limited = "limited"  # it is used, and something keeps us from all of it
    unused = "unused"  # it is there, and something keeps us from it


@dataclass(frozen=True)
class Finding:
    """A fact about one part of the machine, and what would help."""

    part: str
    state: State
    text: str
    remedy: str = ""
