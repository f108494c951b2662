# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/measure.py: which programs a benchmark runs, how often, and in which order.
"""Measurements: each function yields its rows one by one, as soon as they are measured."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from statistics import median
from typing import Any

from ..beside import target_of, write_beside
from ..errors import Unavailable
from ..machine import Machine
from . import from_python, program, simulated_collectives
from . import messages as message_cases
from . import sparse as sparse_cases
from .description import describe
from .rows import DECIDING, DEVICES, finish

Row = dict[str, Any]
Note = Callable[[str], None]

_EMPTY = ("gemm3", "independent", "chains")
_KNOWN = ("cpp-register-again", "cpp-on-host")
_DECIDE = [f"decide-{n}" for n in DECIDING]
_DEVICES = [f"{kind}-{n}" for n in DEVICES for kind in ("bytes", "makespan")]
CASES: dict[str, list[str]] = {
    "overhead": [*_EMPTY, "malloc", "memory", *_DECIDE, *_KNOWN, *from_python.CASES],
    "gemm": ["host", "out-of-core", "out-of-core-bytes", *_DEVICES],
    "potrf": ["host", *_DEVICES, "idgraf-600MB", "idgraf-600MB-rate"],
    "copies": [
        *("h2d", "d2h", "both", "pageable-h2d", "pageable-d2h"),
        *("runs-h2d", "runs-d2h", "same"),
        *("peer", "peer-both", "peer-off"),
        *("all-h2d", "all-d2h", "all-both", "all-peer", "ipc"),
    ],
}
_STREAMS = [
    f"{run}-{n}" for run in ("fixed", "random", "ahead-8", "announced") for n in range(1, 5)
]
_COSTS = ["cost-parallel", "cost-serial_in_order", *from_python.STAGES, "stages"]
CASES["streams"] = [*_STREAMS, "rate-4", *_COSTS]
CASES["spmv"] = sparse_cases.CASES
CASES["messages"] = [*message_cases.KINDS, "collectives", "devices", "simulated"]
_QUICK = "4KiB,1MiB,64MiB"


def _silent(_: str) -> None:
    pass


def _wanted(benchmark: str, cases: Iterable[str]) -> list[str]:
    cases = list(cases)
    for case in cases:
        if case not in CASES[benchmark]:
            raise ValueError(f"no case {case!r} of {benchmark}; there are {CASES[benchmark]}")
    return [case for case in CASES[benchmark] if not cases or case in cases]


def _rows(benchmark: str, lines: Iterable[Row]) -> Iterator[Row]:
    machine, commit = program.environment()
    for line in lines:
        yield finish(benchmark, line, machine, commit)


def _middle(values: list[float]) -> float | None:
    return median(values) if values else None


def _empty_tasks(case: str, repeat: int, cores: int, note: Note) -> Row:
    words = ["tasks", "--case", case, "--cores", cores]
    return _in_turn(case, words, program.STARPU, [case, cores, 2], repeat, cores, note)


def _in_turn(
    case: str,
    words: list[object],
    reference: str,
    its_words: list[object],
    repeat: int,
    cores: int,
    note: Note,
) -> Row:
    """Ours and a reference's, if it is there, in turn, each time in a new process."""
    ours: list[Row] = []
    theirs: list[Row] = []
    with_reference = program.built(reference)
    for i in range(repeat):
        note(f"{case}: run {i + 1} of {repeat}")
        ours += program.run(program.OURS, *words)
        try:
            if with_reference:
                theirs += program.run(reference, *its_words)
        except Unavailable:
            with_reference = False
    return {
        "case": case,
        "value": _middle([row["value"] for row in ours]),
        "unit": ours[0]["unit"],
        "reference": theirs[0]["reference"] if theirs else None,
        "reference_value": _middle([row["value"] for row in theirs]),
        "bound": min(row["bound"] for row in ours),
        "cores": cores,
        "runs": repeat,
    }


def overhead(
    cases: Iterable[str] = (),
    repeat: int = 7,
    cores: int = 2,
    tiles: int = 64,
    note: Note = _silent,
) -> Iterator[Row]:
    """The cost of a task beyond its work: time, calls of malloc, memory of the runtime.

    `decide-N` is the processor time that decisions for N devices take, in a Cholesky factorization
    of `tiles` x `tiles` tiles and of twice as many in each direction.
    """

    def lines() -> Iterator[Row]:
        for case in _wanted("overhead", cases):
            if case in _EMPTY:
                yield _empty_tasks(case, repeat, cores, note)
            elif case in from_python.CASES:
                note(case)
                yield from from_python.run(case, repeat, cores)
            elif case in _DECIDE:
                yield from _decide(case, tiles, repeat, note)
            elif case in _KNOWN:
                note(case)
                yield from program.run(program.OURS, case, "--repeat", repeat)
            else:
                note(case)
                yield from program.run(program.OURS, case, "--cores", cores)

    return _rows("overhead", lines())


def _decide(case: str, tiles: int, repeat: int, note: Note) -> Iterator[Row]:
    note(f"{case}: Cholesky of {tiles} x {tiles} and of {2 * tiles} x {2 * tiles} tiles")
    count = case.removeprefix("decide-")
    machine = program.machine_file("h200x8")
    words = ["--count", count, "--tiles", tiles, "--repeat", repeat, "--machine", machine]
    return program.run(program.OURS, "decide", *words)


def _host(
    benchmark: str, n: int, tile: int, repeat: int, devices: str, note: Note
) -> Iterator[Row]:
    note(f"{benchmark} of order {n} in turn with OpenBLAS")
    words = ["--n", n, "--repeat", repeat, "--devices", devices]
    if tile:
        words += ["--tile", tile]
    return program.run(program.OURS, benchmark, *words)


def _simulated(benchmark: str, run: str, note: Note) -> Iterator[Row]:
    note(f"{benchmark} by the virtual clock: {run}")
    machine = program.machine_file("idgraf")
    return program.run(
        program.OURS, "simulated", "--operation", benchmark, "--run", run, "--machine", machine
    )


def _factorizations(
    benchmark: str, cases: Iterable[str], n: int, tile: int, repeat: int, devices: str, note: Note
) -> Iterator[Row]:
    wanted = _wanted(benchmark, cases)

    def lines() -> Iterator[Row]:
        if "host" in wanted:
            yield from _host(benchmark, n, tile, repeat, devices, note)
        # One run gives several rows: its bytes and its time.
        runs = dict.fromkeys(_run_of(case) for case in wanted if case != "host")
        for run in runs:
            yield from (r for r in _simulated(benchmark, run, note) if r["case"] in wanted)

    return _rows(benchmark, lines())


def _run_of(case: str) -> str:
    kind, _, count = case.rpartition("-")
    if kind in ("bytes", "makespan"):
        return f"devices-{count}"
    return case.removesuffix("-bytes").removesuffix("-rate")


def gemm(
    cases: Iterable[str] = (),
    n: int = 4096,
    tile: int = 0,
    repeat: int = 7,
    devices: str = "cpu",
    note: Note = _silent,
) -> Iterator[Row]:
    """C = A*B + C: on this host against OpenBLAS, and by the virtual clock out of core."""
    return _factorizations("gemm", cases, n, tile, repeat, devices, note)


def potrf(
    cases: Iterable[str] = (),
    n: int = 4096,
    tile: int = 0,
    repeat: int = 7,
    devices: str = "cpu",
    note: Note = _silent,
) -> Iterator[Row]:
    """Cholesky: on this host against OpenBLAS, and by the virtual clock on several devices."""
    return _factorizations("potrf", cases, n, tile, repeat, devices, note)


def copies(
    cases: Iterable[str] = (),
    repeat: int = 3,
    devices: str = "",
    sizes: str = "",
    quick: bool = False,
    output: str | os.PathLike[str] | None = None,
    note: Note = _silent,
) -> Iterator[Row]:
    """Rates of every kind of copy; `output` gets the machine's description with these links.

    Parameters
    ----------
    cases : iterable of str, optional
        Kinds of copies; all by default.
    repeat : int, optional
        Runs of each size.
    devices : str, optional
        Device list; the machine in use by default.
    sizes : str, optional
        As ``"4KiB,1MiB,1GiB"``.
    quick : bool, optional
        Three sizes, each once.
    output : path, optional
        JSON file for `QUADRIGA_MACHINE`.
    note : callable, optional
        Called with what is measured next.
    """
    wanted = _wanted("copies", cases)
    target = None if output is None else target_of(output)

    def lines() -> Iterator[Row]:
        words = ["--repeat", 1 if quick else repeat, "--kinds", ",".join(wanted)]
        words += ["--sizes", sizes or _QUICK] if sizes or quick else []
        words += ["--devices", devices] if devices else []
        note("copies: making buffers")
        measured: list[Row] = []
        for line in program.run(program.OURS, "copies", *words):
            if line["case"] == "machine":
                found = json.loads(line["description"])
                continue
            note(f"copies: {len(measured) + 1} measured, last {line['case']}")
            measured.append(line)
            yield line
        if target is not None:
            text = json.dumps(describe(found, measured, _source()), indent=1)
            Machine.from_json(text)
            write_beside(target, text + "\n")

    return _rows("copies", lines())


def streams(
    cases: Iterable[str] = (),
    repeat: int = 20,
    note: Note = _silent,
) -> Iterator[Row]:
    """Pipelines of 48 chunks by the virtual clock, percent over their bound; what stages cost.

    The value is the worst of ratios r of copies to kernels from 10 to 100 %, each the mean of
    `repeat` draws of sizes; `worst` is the worst run. `stages` is in turn with oneTBB, where that
    was found.
    """
    wanted = _wanted("streams", cases)

    def lines() -> Iterator[Row]:
        if "stages" in wanted:
            words: list[object] = ["streams", "--run", "stages", "--cores", 2]
            yield _in_turn("stages", words, program.TBB, [2], min(repeat, 7), 2, note)
        for case in from_python.STAGES:
            if case in wanted:
                note(case)
                yield from_python.stage(case, min(repeat, 7), 2)
        by_program = [case for case in wanted if case not in (*from_python.STAGES, "stages")]
        for run in dict.fromkeys(case.rpartition("-")[0] for case in by_program):
            note(f"streams: {run}")
            words = ["--run", run, "--seeds", repeat]
            for line in program.run(program.OURS, "streams", *words):
                if line["case"] in wanted:
                    yield line

    return _rows("streams", lines())


def spmv(
    cases: Iterable[str] = (),
    n: int = 64,
    repeat: int = 7,
    devices: str = "cpu",
    matrix: str | os.PathLike[str] | None = None,
    note: Note = _silent,
) -> Iterator[Row]:
    """Sparse products by format, and whole solves, beside SciPy, MKL and cuSPARSE.

    Parameters
    ----------
    cases : iterable of str, optional
        All by default, those of files only with `matrix`.
    n : int, optional
        Points, or nodes, in each of three dimensions.
    repeat : int, optional
        Passes, in turn with the others.
    devices : str, optional
    matrix : path, optional
        A Matrix Market or .npz file, for the cases of files.
    note : callable, optional
        Called with what is measured next.
    """
    path = None if matrix is None else os.fspath(matrix)
    asked = list(cases)

    def lines() -> Iterator[Row]:
        for case in _wanted("spmv", asked):
            if path is None and case.endswith("-file") and not asked:
                continue
            note(f"{case} in turn with others")
            yield from sparse_cases.run(case, n, repeat, devices, path)

    return _rows("spmv", lines())


def messages(
    cases: Iterable[str] = (),
    repeat: int = 5,
    sizes: Iterable[int] = (),
    pin: str = "",
    devices: str = "",
    note: Note = _silent,
) -> Iterator[Row]:
    """Messages between processes of this host, beside an MPI's where one was found.

    Parameters
    ----------
    cases : iterable of str, optional
        ``pingpong`` (microseconds one way) and ``bandwidth``, the default; ``collectives``
        of two processes; ``devices``: memory of devices of two processes; ``simulated``:
        collectives between nodes by the virtual clock.
    repeat : int, optional
        Runs, in turn with MPI's.
    sizes : iterable of int, optional
        Bytes of a message; 8 B to 64 MiB by default.
    pin : str, optional
        Two cores, such as ``"0,1"``, that the processes are bound to.
    devices : str, optional
        Of the case ``devices``: ``cuda``, or emulated ones, the default.
    note : callable, optional
        Called with what is measured next.
    """
    wanted = _wanted("messages", list(cases) or message_cases.KINDS)
    sizes = list(sizes)
    asked = sizes or list(message_cases.SIZES)

    def lines() -> Iterator[Row]:
        for kind in wanted:
            if kind == "simulated":
                yield from simulated_collectives.run(note)
                continue
            if kind == "devices":
                note("messages between devices")
                of_devices = sizes or list(message_cases.DEVICE_SIZES)
                among = devices or message_cases.DEVICES
                yield from message_cases.run_devices(of_devices, repeat, among)
                continue
            note(f"{kind} in turn with MPI")
            if kind == "collectives":
                lengths = sizes or message_cases.COLLECTIVE_SIZES
                yield from message_cases.run_collectives(list(lengths), repeat, pin)
            else:
                yield from message_cases.run(kind, asked, repeat, pin)

    return _rows("messages", lines())


def _source() -> str:
    machine, commit = program.environment()
    date = datetime.now(UTC).date().isoformat()
    built = f", built from {commit}" if commit else ""
    return f"measured {date} by quadriga bench copies on {machine['cpu']}{built}"
