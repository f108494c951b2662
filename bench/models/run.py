# SPDX-License-Identifier: BSD-3-Clause
# bench/models/run.py: builds and runs the programs of this folder, and ours, for one matrix.
"""Conjugate gradients in several programming models, side by side.

usage: run.py [--n N] [--model NAME]... [--json] [--build FOLDER] [--offload]

Each program is built by the compilers that are found; what can't be built or run is told with the
reason. Rows are those of a 27-point grid of n points along each side.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMON = ["-std=c++20", "-O3"]


@dataclass(frozen=True)
class Program:
    """How one is built, and the ways to exchange that its model has."""

    source: str
    compiler: str
    flags: tuple[str, ...]
    exchanges: tuple[str, ...]
    #: Flags for compilers that offload to NVIDIA's GPUs.
    offload: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of its file."""
        return Path(self.source).stem


PROGRAMS = [
    Program("host_openmp.cpp", "g++", ("-march=native", "-fopenmp"), ("none",)),
    Program("openmp_target.cpp", "g++", ("-march=native", "-fopenmp"), ("host", "device"),
            ("-foffload=nvptx-none",)),
    Program("openacc.cpp", "g++", ("-march=native", "-fopenacc"), ("host",),
            ("-foffload=nvptx-none",)),
    Program("opencl.cpp", "g++", ("-lOpenCL",), ("host", "device")),
    Program("cuda.cu", "nvcc", (), ("host", "pageable", "device", "peer")),
]  # fmt: skip


def build(program: Program, folder: Path, offload: bool) -> Path | str:
    """The program, or why there is none."""
    compiler = shutil.which(program.compiler)
    if compiler is None and program.compiler == "nvcc" and "CUDA_HOME" in os.environ:
        compiler = shutil.which("nvcc", path=f"{os.environ['CUDA_HOME']}/bin")
    if compiler is None:
        return f"no {program.compiler} here"
    made = folder / program.name
    flags = program.flags + (program.offload if offload else ())
    words = [compiler, *COMMON, str(HERE / program.source), *flags, "-o", str(made)]
    told = subprocess.run(words, capture_output=True, text=True)
    lines = told.stderr.strip().splitlines()
    reason = next((line for line in lines if "error" in line), lines[-1] if lines else "unknown")
    return made if told.returncode == 0 else f"can't be built: {reason.strip()}"


def run(program: Program, path: Path, n: int) -> Iterator[dict[str, object]]:
    """What it tells for one device and for two, by every exchange, with overlap and without."""
    ways = [(1, program.exchanges[0], "yes")]
    ways += [(2, each, overlap) for each in program.exchanges for overlap in ("yes", "no")]
    for devices, exchange, overlap in ways:
        words = [path, "--n", n, "--devices", devices, "--exchange", exchange, "--overlap", overlap]
        told = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if told.returncode != 0:
            reason = (told.stderr.strip().splitlines() or [f"status {told.returncode}"])[-1]
            yield {"model": program.name, "devices": devices, "left_out": reason}
            return
        yield json.loads(told.stdout)
        if exchange == "none" and devices == 2:
            return


def ours(n: int) -> list[dict[str, object]]:
    """The same by quadriga.sparse, on one emulated device or GPU and on two."""
    try:
        import numpy as np

        import quadriga
        from quadriga import sparse
    except ImportError as error:
        return [{"model": "quadriga", "devices": 1, "left_out": str(error)}]
    with quadriga.Engine() as engine:
        gpus = [each for each in engine.machine.devices if each.kind == "cuda"]
    a = sparse.poisson((n, n, n), 27)
    b = np.random.default_rng(1).random(a.shape[0]) - 0.5
    rows: list[dict[str, object]] = []
    for devices in ["cpu", *(f"cuda:{count}" for count in (1, 2) if len(gpus) >= count)]:
        solver = sparse.Solver(a, devices=devices)
        result = solver.solve(b, rtol=1e-8)
        rows.append({
            "model": "quadriga", "n": n, "devices": len(set(solver.plan["devices"])), "on": devices,
            "exchange": "auto", "overlap": any(solver.plan["overlaps"]),
            "product_seconds": solver.measure_product(50), "iterations": result.iterations,
            "solve_seconds": result.seconds,
            "total_seconds": result.seconds + result.setup_seconds,
            "residual": float(result.residual / np.linalg.norm(b)),
        })  # fmt: skip
    return rows


def show(row: dict[str, object]) -> str:
    """As a line of a table."""
    if "left_out" in row:
        return f"{row['model']:14} {row['devices']}  left out: {row['left_out']}"
    n = int(str(row["n"]))
    # Each of the grid's points has 27 neighbours, but for those at its sides.
    flops = 2 * (3 * n - 2) ** 3 / float(str(row["product_seconds"]))
    overlap = "overlap" if row["overlap"] else "in turn"
    return (
        f"{row['model']:14} {row['devices']}  {row['exchange']:9} {overlap}  "
        f"product {1e3 * float(str(row['product_seconds'])):8.3f} ms {flops / 1e9:7.2f} GFLOP/s  "
        f"{row['iterations']:4} iterations {float(str(row['solve_seconds'])):7.3f} s  "
        f"total {float(str(row['total_seconds'])):7.3f} s  on {row['on']}"
    )


def rows_of(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Of each model that was asked for, as soon as it ran."""
    for program in PROGRAMS:
        if options.model and program.name not in options.model:
            continue
        path = build(program, options.build, options.offload)
        if isinstance(path, Path):
            yield from run(program, path, options.n)
        else:
            yield {"model": program.name, "devices": 1, "left_out": path}
    if not options.model or "quadriga" in options.model:
        yield from ours(options.n)


def main() -> int:
    """Exits with 1 if a program that ran has a wrong result."""
    parser = argparse.ArgumentParser(description="Conjugate gradients by programming models.")
    parser.add_argument("--n", type=int, default=40, help="points along each side of the grid")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    parser.add_argument("--build", type=Path, default=Path("build/models"))
    parser.add_argument("--offload", action="store_true", help="for NVIDIA's GPUs, by g++")
    parser.add_argument(
        "--model",
        action="append",
        choices=[*(each.name for each in PROGRAMS), "quadriga"],
        help="only this one; may be repeated",
    )
    options = parser.parse_args()
    options.build.mkdir(parents=True, exist_ok=True)
    wrong = False
    for row in rows_of(options):
        print(json.dumps(row) if options.json else show(row), flush=True)
        wrong |= float(str(row.get("residual", 0))) > 2e-8
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
