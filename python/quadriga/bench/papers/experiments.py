# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/experiments.py: the figures and tables, and the runs of each.
"""Which runs make a figure. What a figure says, and what is assumed, stands with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .published import LIMA, WU

POLICIES = ("steal", "earliest-finish", "default")
_GIB = 2**30


@dataclass(frozen=True)
class Point:
    """One run: its place in the figure, and the words of the program that simulates it.

    With several tile sizes, the best of as many runs, as where a paper has tuned them.
    """

    line: str
    x: float
    words: dict[str, object]
    tiles: tuple[int, ...] = ()

    @property
    def runs(self) -> list[dict[str, object]]:
        """The words of each run."""
        return [self.words | {"tile": tile} for tile in self.tiles] or [self.words]


@dataclass(frozen=True)
class Experiment:
    """A figure or a table of a paper.

    Attributes
    ----------
    name : str
        As ``--figure`` takes it.
    title, paper, says : str
        What it shows, whose it is, and what its text says about it.
    x, unit : str
        The axes.
    points : callable
        The runs; with True fewer and smaller ones.
    host_gib : bool
        Whether bytes between host and devices are shown instead of the rate.
    """

    name: str
    title: str
    paper: str
    says: str
    x: str
    points: Callable[[bool], list[Point]] = field(repr=False)
    unit: str = "GFLOP/s"
    host_gib: bool = False

    def value(self, row: dict[str, float]) -> float:
        """What is shown of a run."""
        return row["host_bytes"] / _GIB if self.host_gib else row["value"]


def _lima(operation: str, n: int, tile: int, devices: int) -> dict[str, object]:
    return {
        "machine": "idgraf",
        "operation": operation,
        "n": n,
        "tile": tile,
        "devices": devices,
        "cores": 0,
    }


def _wu(n: int, tile: int, fine: int = 0, devices: int = 1, **more: object) -> dict[str, object]:
    return {"machine": "bunsen", "n": n, "tile": tile, "fine": fine, "devices": devices} | more


def _blocks(quick: bool) -> list[Point]:
    orders = (2048, 4096, 12288) if quick else (2048, 4096, 6144, 8192, 10240, 12288, 16384, 20480)
    return [
        Point(f"blocks of {tile}", n, _lima("gemm", n, tile, 1))
        for tile in ((1024, 2048) if quick else (512, 1024, 2048))
        for n in orders
    ]


def _orders(quick: bool) -> list[Point]:
    orders = (2048, 8192) if quick else (1024, 2048, 4096, 6144, 8192, 10240, 14336, 20480)
    return [Point("blocks of 1024", n, _lima("potrf", n, 1024, 1)) for n in orders]


def _gpus(operation: str) -> Callable[[bool], list[Point]]:
    def points(quick: bool) -> list[Point]:
        n = 8192 if quick else 16384
        counts = (1, 2, 8) if quick else (1, 2, 3, 4, 5, 6, 7, 8)
        return [Point("blocks of 1024", each, _lima(operation, n, 1024, each)) for each in counts]

    return points


def _grains(quick: bool) -> list[Point]:
    orders = (4096, 8192) if quick else (4096, 8192, 12288, 16384, 20480)
    return [
        Point(f"blocks of {tile}", n, _lima("gemm", n, tile, 4))
        for tile in ((1024, 2048) if quick else (512, 1024, 2048))
        for n in orders
    ]


def _streams(quick: bool) -> list[Point]:
    orders = (8192,) if quick else (8192, 16384, 24576, 32768)
    return [
        Point(f"{kind}, {streams} streams", n, _wu(n, 576, fine, streams=streams))
        for kind, fine in (("flat", 0), ("divided", 192))
        for streams in (1, 2, 3)
        for n in orders
    ]


def _tiles(n: int) -> Callable[[bool], list[Point]]:
    def points(quick: bool) -> list[Point]:
        order = min(n, 16384) if quick else n
        fines = (0, 192) if quick else (0, 128, 192, 256)
        found = []
        for fine in fines:
            step, least = fine or 192, 384 if n < 20000 else 576
            first = -(-least // step) * step
            for tile in range(first, 1921, step)[:: 3 if quick else 1]:
                line = f"b = {fine}" if fine else "flat"
                found.append(Point(line, tile, _wu(order, tile, fine)))
        return found

    return points


def _cards(quick: bool) -> list[Point]:
    orders = (8192, 16384) if quick else (8192, 16384, 24576, 35840, 53248, 63488)
    flat, divided = ((576,), (768,)) if quick else ((384, 576, 768, 1152), (576, 768, 1152, 1344))
    return [
        Point(f"{kind}, {devices} GPUs", n, _wu(n, tiles[0], fine, devices), tiles)
        for kind, fine, tiles in (("flat", 0, flat), ("divided", 192, divided))
        for devices in ((1, 3) if quick else (1, 2, 3))
        for n in orders
    ]


EXPERIMENTS = {
    each.name: each
    for each in (
        Experiment(
            "lima-5", "Product on one C2050 by block size, beyond its memory from 10240", LIMA,
            "309 GFLOP/s by blocks of 2048, also where the matrices exceed the memory.",
            "order", _blocks,
        ),
        Experiment(
            "lima-6", "Cholesky on one core and one C2050, blocks of 1024", LIMA,
            "XKaapi and StarPU are faster than MAGMA from order 10240.",
            "order", _orders,
        ),
        Experiment(
            "lima-7", "Product of order 16384 on 1 to 8 C2050", LIMA,
            "2023 GFLOP/s on 8 GPUs, 6.74 times one.",
            "GPUs", _gpus("gemm"),
        ),
        Experiment(
            "lima-8", "Cholesky of order 16384 on 1 to 8 C2050, diagonal blocks on a core", LIMA,
            "Neither system scales: StarPU reaches 681 GFLOP/s on 8 GPUs, 2.94 times one.",
            "GPUs", _gpus("potrf"),
        ),
        Experiment(
            "lima-9", "Product on 4 C2050 by block size", LIMA,
            "No number is stated; XKaapi gains over StarPU where blocks are small.",
            "order", _grains,
        ),
        Experiment(
            "lima-I", "Bytes between host and GPUs, product of order 16384", LIMA,
            "Input and output are 8 GB.",
            "GPUs", _gpus("gemm"), "GiB", True,
        ),
        Experiment(
            "lima-II", "Bytes between host and GPUs, Cholesky of order 16384", LIMA,
            "Input and output are 4 GB for the paper, which counts the whole matrix.",
            "GPUs", _gpus("potrf"), "GiB", True,
        ),
        Experiment(
            "wu-3.8", "Cholesky on one K40 and 16 cores by compute streams, B = 576", WU,
            "Streams gain much for flat tasks, which then match divided ones without; a third adds "
            "little to two.",
            "order", _streams,
        ),
        Experiment(
            "wu-3.9-16K", "Cholesky of order 16K on one K40 and 16 cores by tile sizes B and b", WU,
            "Flat tasks lose as tiles grow; divided ones much less.",
            "B", _tiles(16384),
        ),
        Experiment(
            "wu-3.9-48K", "Cholesky of order 48K on one K40 and 16 cores by tile sizes B and b", WU,
            "A wide range of B reaches 90 % of the best when tasks are divided.",
            "B", _tiles(49152),
        ),
        Experiment(
            "wu-3.10", "Cholesky on 1 to 3 K40 and 16 cores, beyond memory from 35K, 52K, 62K",
            WU,
            "1.36, 2.5 and 3.7 TFLOP/s on 1, 2 and 3 GPUs; flat tasks reach around 10 % less. "
            "Tiles are the best of some sizes, as there.",
            "order", _cards,
        ),
    )
}  # fmt: skip


def points(names: tuple[str, ...], quick: bool) -> Iterator[tuple[Experiment, str, Point]]:
    """All runs of some experiments, by each policy."""
    for name in names or tuple(EXPERIMENTS):
        experiment = EXPERIMENTS[name]
        for policy in POLICIES:
            for point in experiment.points(quick):
                yield experiment, policy, point
