# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/mpi_preload.py: mpi-preload: runs an MPI program with Quadriga's library.
"""The command that puts Quadriga's library between a program and its MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from .._core import variable_of_process
from ..bench.program import package
from ..errors import InvalidArgument, Unavailable
from .completing import files_and
from .main import DONE

# Names of libraries by which programs ask for an MPI, and ours for it.
_LIBRARIES = {
    "libmpi_abi.so.1": "abi",
    "libmpi.so.40": "openmpi",
    "libmpich.so.12": "mpich",
    "libmpi.so.12": "mpich",
}
# What the launchers of these MPIs give to the processes that they start.
_LAUNCHERS = {"OMPI_COMM_WORLD_RANK": "openmpi", "PMI_RANK": "mpich"}
# Programs that start ranks, which start this command in turn.
_STARTERS = ("mpiexec", "mpirun", "orterun", "prterun", "srun")
# Ours, and the compiler by which each is built; abi is the interface of MPI 5, of any MPI.
_MPIS = {"openmpi": "mpicc.openmpi", "mpich": "mpicc.mpich", "abi": "mpicc_abi"}


@click.command(
    "mpi-preload",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--mpi", type=click.Choice(list(_MPIS)), help="The program's MPI; default: found out."
)
@click.option("--counters", is_flag=True, help="Print at MPI_Finalize what was taken over.")
@click.option("--host-buffers", is_flag=True, help="Test mode: host buffers go Quadriga's way.")
@click.option("--small", metavar="BYTES", help="Messages up to BYTES go by MPI.  [8192]")
@click.option("--without", metavar="NAMES", help="Leave functions to MPI, as Isend,Pack.")
@click.option(
    "--emulated", is_flag=True, help="Emulate device memory for quadriga_emulated_malloc."
)
@click.option("--print", "prints", is_flag=True, help="Only print the library's path.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, shell_complete=files_and())
def mpi_preload(
    mpi: str | None,
    counters: bool,
    host_buffers: bool,
    small: str | None,
    without: str | None,
    emulated: bool,
    prints: bool,
    program: Sequence[str],
) -> int:
    """Run an MPI PROGRAM with Quadriga's library between it and its MPI.

    As in `mpiexec -n 4 quadriga mpi-preload ./program`. Each rank starts it; ranks that don't get
    ordinary messages. A program that ends in .py is run by this Python.
    """
    if prints and not program:
        click.echo(library(mpi or _mpi_of_launcher(None)))
        return DONE
    if not program:
        raise click.UsageError("Missing argument 'PROGRAM'.")
    command = [sys.executable, *program] if program[0].endswith(".py") else list(program)
    path = library(_mpi_of(command[0], mpi))
    if prints:
        click.echo(path)
        return DONE
    flags = {"COUNTERS": counters, "HOST": host_buffers, "EMULATED": emulated}
    for name, given in flags.items():
        if given:
            os.putenv(f"QUADRIGA_MPI_{name}", "1")
    for name, text in {"SMALL": small, "WITHOUT": without}.items():
        if text is not None:
            os.putenv(f"QUADRIGA_MPI_{name}", text)
    os.putenv("LD_PRELOAD", ":".join([str(path), *_preloaded()]))
    sys.stdout.flush()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise click.ClickException(f"mpi-preload: {command[0]}: {error.strerror}") from error


def library(mpi: str) -> Path:
    """The library for an MPI."""
    path = package() / "lib" / f"libquadriga-preload-{mpi}.so"
    if not path.is_file():
        raise Unavailable(
            f"mpi-preload: this build has no library for {mpi}: "
            f"{_MPIS[mpi]} wasn't found when it was configured"
        )
    return path


def _variable(name: str) -> str | None:
    """A variable of this process as it was started."""
    return variable_of_process(os.getpid(), name)


def _preloaded() -> list[str]:
    return [each for each in (_variable("LD_PRELOAD") or "").split(":") if each]


def _mpi_of(program: str, given: str | None) -> str:
    """As given, by the libraries that a program asks for, or by the launcher of this process."""
    if Path(program).name.split(".")[0] in _STARTERS:
        raise InvalidArgument(
            f"mpi-preload: {program} starts the ranks, and each starts this command: "
            "mpiexec -n 4 quadriga mpi-preload ./program"
        )
    path = shutil.which(program)
    if path is None:
        raise InvalidArgument(f"mpi-preload: there is no program {program}")
    ended = subprocess.run(["ldd", path], capture_output=True, text=True)
    said = ended.stdout + ended.stderr
    if _is_binary(path) and ("not a dynamic" in said or "statically linked" in said):
        raise InvalidArgument(
            f"mpi-preload: {program} is linked statically, and takes no library: link its MPI "
            "dynamically"
        )
    found = next((mpi for name, mpi in _LIBRARIES.items() if f"{name} =>" in said), None)
    if given is not None and found not in (None, given):
        raise InvalidArgument(f"mpi-preload: {program} is linked with {found}, not {given}")
    return given or found or _mpi_of_launcher(program)


def _is_binary(path: str) -> bool:
    """Of a script it is its interpreter that is linked."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _mpi_of_launcher(program: str | None) -> str:
    for variable, mpi in _LAUNCHERS.items():
        if _variable(variable) is not None:
            return mpi
    raise InvalidArgument(
        f"mpi-preload: which MPI {program or 'the program'} uses isn't known; say --mpi "
        f"{' or --mpi '.join(_MPIS)}"
    )
