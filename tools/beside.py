# SPDX-License-Identifier: BSD-3-Clause
# tools/beside.py: MPI programs run without the preload library and with it, in turn.
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: The test mode: host buffers go Quadriga's way, all that an envelope doesn't take.
TEST_MODE = {"QUADRIGA_MPI_HOST": "1", "QUADRIGA_MPI_SMALL": "64"}
#: As beside a GPU that the program doesn't use: other ranks might send from there.
BESIDE_DEVICES = {"QUADRIGA_MPI_EMULATED": "1"}


class Ended(NamedTuple):
    """How a program has ended: its time, that of the cores of all its processes, what it said."""

    code: int
    seconds: float
    cores: float
    said: str


def core_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


#: Round robin before all that has no such priority: other work on the machine then hardly shows.
REAL_TIME = ["chrt", "--rr", "1"]


def run(command: list[str], folder: Path, limit: float) -> Ended:
    """Runs a launcher; its ranks' time counts once it has waited for them. Past the limit: 124."""
    begin, cores = time.monotonic(), core_seconds()
    ended = subprocess.run(
        ["timeout", "-k", "3", f"{limit:g}", *command], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    code = 124 if ended.returncode == 137 else ended.returncode  # it had to be killed
    return Ended(code, time.monotonic() - begin, core_seconds() - cores, ended.stdout)


def library_of(mpi: str) -> str:
    """The preload library: this tree's, else that of the package."""
    built = ROOT / "build" / "release" / "src" / "mpi" / f"libquadriga-preload-{mpi}.so"
    if built.is_file():
        return str(built)
    command = [sys.executable, "-m", "quadriga", "mpi-preload", "--mpi", mpi, "--print"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def preloading(mpi: str, variables: dict[str, str]) -> list[str]:
    """What stands before the program; not the command itself, whose start would be timed."""
    return ["env", f"LD_PRELOAD={library_of(mpi)}", *(f"{k}={v}" for k, v in variables.items())]


def spread(ratios: list[float]) -> str:
    """The median, and between which values half of them are."""
    if len(ratios) < 2:
        return f"{ratios[0]:.3f}"
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def row(name: str, plain: list[Ended], ours: list[Ended]) -> str:
    """Medians of both, and of how many times as long each round took with the library."""
    parts = []
    for what, unit in (("seconds", "s"), ("cores", "s of cores")):
        both = [(getattr(a, what), getattr(b, what)) for a, b in zip(plain, ours, strict=True)]
        without, with_it = (statistics.median(side) for side in zip(*both, strict=True))
        ratios = [b / max(a, 1e-3) for a, b in both]
        parts.append(f"{without:.2f}, {with_it:.2f} {unit}: {spread(ratios)}")
    return f"{name}: {'; '.join(parts)}"
