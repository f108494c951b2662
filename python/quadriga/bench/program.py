# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/program.py: runs the C++ programs that measure, each time in a new process.
"""Runs the benchmark programs, which are in `bin` beside the extension module."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import Error, InvalidArgument, Unavailable

OURS = "quadriga-bench"
STARPU = "quadriga-bench-starpu"
TBB = "quadriga-bench-tbb"
MPI = "quadriga-bench-mpi"


def package() -> Path:
    """Where the extension module is installed, and what is installed with it."""
    spec = importlib.util.find_spec("quadriga._core")
    if spec is None or spec.origin is None:
        raise Unavailable("quadriga's extension module is not installed")
    return Path(spec.origin).parent


def machine_file(name: str) -> Path:
    """A description of a machine that comes with the package."""
    return package() / "machines" / f"{name}.json"


def built(program: str) -> bool:
    return (package() / "bin" / program).is_file()


def run(program: str, *words: object) -> Iterator[dict[str, Any]]:
    """Runs a program and gives its lines as they come.

    Raises `Unavailable` if it was not built, doesn't start or lacks something here,
    `InvalidArgument` with what it said if it was given wrong words, `Error` if it failed.
    """
    path = package() / "bin" / program
    if not path.is_file():
        raise Unavailable(f"{program} is not part of this build (QUADRIGA_BENCH=ON makes it)")
    command = [str(path), *map(str, words)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            for line in process.stdout:
                yield json.loads(line)
            complaint = process.stderr.read().strip()
        except BaseException:
            process.kill()
            raise
    if process.returncode in (3, 127):
        raise Unavailable(complaint or f"{program} doesn't start")
    if process.returncode == 2:
        raise InvalidArgument(complaint)
    if process.returncode != 0:
        raise Error(complaint or f"{program} ended with status {process.returncode}")


def environment() -> tuple[dict[str, Any], str | None]:
    """The processor with its cores, and the commit that the programs were built from."""
    (found,) = run(OURS, "machine")
    return {"cpu": found["cpu"], "cores": int(found["cores"])}, found["commit"] or None
