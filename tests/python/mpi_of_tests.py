# SPDX-License-Identifier: BSD-3-Clause
# tests/python/mpi_of_tests.py: programs in C for each MPI, with and without preloading.
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quadriga.bench.program import package

HEAD = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>
#define CHECK(what) do { if (!(what)) { \\
  fprintf(stderr, "rank %d, line %d: %s\\n", rank, __LINE__, #what); _exit(3); } } while (0)
extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));
int rank, size;
"""


_FOLDER = Path(__file__).resolve().parents[2] / "build" / "mpi"  # of tools/mpi_of_pypi


class Mpi:
    """An MPI: its compiler, its launcher, and which preload library is its own."""

    def __init__(self, name, library, compiler, launcher):
        self.name = name
        self.library = library
        self.compiler = compiler
        self.launcher = launcher

    def is_here(self):
        library = package() / "lib" / f"libquadriga-preload-{self.library}.so"
        found = shutil.which(self.compiler) and shutil.which(self.launcher)
        return bool(found) and library.is_file()

    def options(self):
        return ["--allow-run-as-root", "--oversubscribe"] if "openmpi" in self.name else []


_MPIS = {
    each.name: each
    for each in (
        Mpi("openmpi", "openmpi", "mpicc.openmpi", "mpiexec.openmpi"),
        Mpi("mpich", "mpich", "mpicc.mpich", "mpiexec.mpich"),
        Mpi(
            "openmpi5",
            "openmpi",
            str(_FOLDER / "openmpi5/bin/mpicc"),
            str(_FOLDER / "openmpi5/bin/mpiexec"),
        ),
        Mpi(
            "mpich5",
            "mpich",
            str(_FOLDER / "abi/bin/mpicc"),
            str(_FOLDER / "abi/bin/mpiexec"),
        ),
        Mpi("abi", "abi", str(_FOLDER / "abi/bin/mpicc_abi"), str(_FOLDER / "abi/bin/mpiexec")),
    )
}


def is_here(mpi):
    return _MPIS[mpi].is_here()


def has_large_counts(mpi):
    """Whether it is of version 4, which has MPI_Send_c and so on."""
    return mpi in ("mpich", "mpich5", "abi")


EACH_MPI = [
    pytest.param(
        mpi, marks=pytest.mark.skipif(not is_here(mpi), reason=f"no {mpi}, or no preload library")
    )
    for mpi in _MPIS
    if mpi != "mpich5"  # MPICH 5 is tested by the interface of MPI 5.
]


def build(mpi, source, program, *options):
    subprocess.run([_MPIS[mpi].compiler, "-w", "-g", *options, source, "-o", program], check=True)


def library_of(mpi):
    """Its preload library."""
    return package() / "lib" / f"libquadriga-preload-{_MPIS[mpi].library}.so"


def preprocessed(mpi, folder):
    """The MPI's header as the compiler reads it."""
    source = folder / "header.c"
    source.write_text("#include <mpi.h>\n")
    command = [_MPIS[mpi].compiler, "-E", "-P", source]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def compiled(folder, mpi, body):
    """A program whose main() sets rank and size, runs a body, and finalizes."""
    source = folder / f"{mpi}.c"
    program = folder / mpi
    begin = "MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);"
    begin += " MPI_Comm_size(MPI_COMM_WORLD, &size);"
    source.write_text(
        HEAD
        + (body if "int main" in body else f"int main(int argc, char** argv) {{ {begin}\n{body}\n")
        + ("" if "int main" in body else "MPI_Finalize(); return 0; }\n")
    )
    build(mpi, source, program)
    return program


def mpiexec(mpi, ranks, *more):
    return [_MPIS[mpi].launcher, *_MPIS[mpi].options(), *more, "-n", str(ranks)]


def by_command(*options):
    """By the command of users."""
    return [sys.executable, "-m", "quadriga", "mpi-preload", *options]


_FLAGS = {"--host-buffers": "HOST", "--counters": "COUNTERS", "--emulated": "EMULATED"}
_VALUES = {"--small": "SMALL", "--without": "WITHOUT"}


def preloaded(mpi, *options):
    """What the command does, without starting Python once more for each rank."""
    settings = [f"LD_PRELOAD={library_of(mpi)}"]
    words = iter(options)
    for word in words:
        name, value = (_FLAGS[word], "1") if word in _FLAGS else (_VALUES[word], next(words))
        settings.append(f"QUADRIGA_MPI_{name}={value}")
    return ["env", *settings]


def run(command, timeout=240):
    # Python's own view of the environment lacks what MPI_Init of another test's mpi4py has put into
    # it, from which mpiexec would take itself for a rank.
    environment = dict(os.environ)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)


def run_preloaded(program, mpi, ranks, *options, arguments=()):
    """Runs a program on all ranks with the library; none may fail. What was said on stderr."""
    command = [*mpiexec(mpi, ranks), *preloaded(mpi, "--counters", *options), program, *arguments]
    ended = run(command)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stderr


def counted(stderr, word):
    """A number of the line of counters: of messages "sent", "received" and so on."""
    line = next(each for each in stderr.splitlines() if " ranks; sent " in each)
    after = line.split(f" {word} ")[1].split()[0]
    return int(after.rstrip(";,"))
