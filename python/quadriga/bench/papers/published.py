# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/published.py: figures that the papers state.
"""What the papers report, where their text or tables state a number."""

from __future__ import annotations

from dataclasses import dataclass

LIMA = "Lima, Gautier, Maillard, Danjean: Exploiting Concurrent GPU Operations, 2012"
WU = "Wu, dissertation, University of Tennessee, 2017"


@dataclass(frozen=True)
class Published:
    """One number of a paper: which system reached it, at which place of the figure."""

    figure: str
    system: str
    x: float
    value: float
    source: str


def _table(figure: str, source: str, rows: dict[str, tuple[float, ...]]) -> list[Published]:
    return [
        Published(figure, system, x, value, source)
        for system, values in rows.items()
        for x, value in zip((1, 2, 4, 6, 8), values, strict=True)
    ]


PUBLISHED = [
    Published("lima-5", "cuBLAS without copies", 2048, 312, "section IV.A"),
    Published("lima-5", "cuBLAS without copies", 4096, 315, "section IV.A"),
    Published("lima-5", "cuBLAS without copies", 16384, 293, "section IV.A: larger than 4096"),
    Published("lima-5", "cuBLAS with copies", 2048, 152, "section IV.A"),
    Published("lima-5", "XKaapi, blocks of 1024", 2048, 240, "section IV.A"),
    Published("lima-5", "XKaapi, blocks of 2048", 16384, 309, "section IV.A: larger than 8192"),
    Published("lima-5", "XKaapi, blocks of 512", 4096, 247.5, "section IV.B"),
    Published("lima-5", "XKaapi, blocks of 512", 16384, 271, "section IV.B: larger than 4096"),
    Published("lima-7", "XKaapi", 1, 2023.14 / 6.74, "section IV.D: 8 GPUs over the speed-up"),
    Published("lima-7", "XKaapi", 8, 2023.14, "section IV.D"),
    Published("lima-8", "StarPU", 1, 680.82 / 2.94, "section IV.D: 8 GPUs over the speed-up"),
    Published("lima-8", "StarPU", 8, 680.82, "section IV.D"),
    *_table("lima-I", "table I", {
        "XKaapi": (8.00, 10.27, 16.49, 23.23, 29.29),
        "StarPU": (22.54, 14.97, 16.98, 20.09, 24.35),
    }),
    *_table("lima-II", "table II", {
        "XKaapi": (3.71, 7.38, 12.28, 12.89, 14.62),
        "StarPU": (2.23, 3.81, 6.55, 7.38, 9.00),
    }),
    Published("wu-3.10", "h-PaRSEC, largest orders", 1, 1360, "section 3.7.4"),
    Published("wu-3.10", "h-PaRSEC, largest orders", 2, 2500, "section 3.7.4"),
    Published("wu-3.10", "h-PaRSEC, largest orders", 3, 3700, "section 3.7.4"),
    Published("wu-3.10", "PaRSEC, largest orders", 1, 1360 / 1.1, "section 3.7.4: 10 % less"),
]  # fmt: skip


def published(figure: str) -> list[Published]:
    """The numbers of a figure, in the order of its text."""
    return [each for each in PUBLISHED if each.figure == figure]
