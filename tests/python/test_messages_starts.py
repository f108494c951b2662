# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages_starts.py: worlds by torchrun's variables, mpiexec and mpi4py's way.
import multiprocessing
import os
import shutil
import subprocess
import sys

import pytest

from quadriga import message
from quadriga.errors import Unavailable

PROGRAM = """
import sys
import numpy as np
from quadriga import message
with message.world(deadline=200) as comm:
    total = comm.allreduce(np.array([comm.rank + 1.0]))[0]
    sys.stdout.write(f"{comm.rank} of {comm.size}: {total:g}\\n")
"""
LAUNCHERS = ("QUADRIGA_LAUNCH_", "OMPI_", "PMIX_", "PMI_", "TORCHELASTIC_")
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


# As many files as are open may be, and a few more.
LIMITED = """
import os, resource, sys
import quadriga
from quadriga import message
rank, few, more = map(int, sys.argv[2:5])
if rank == few:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + more, hard))
try:
    message.join("file:" + sys.argv[1], rank, 3, "ab" * 16, patience=30).close()
except quadriga.Error as error:
    sys.stdout.write(f"{type(error).__name__}: {error}")
"""


def environment(folder, **more):
    """This process's variables without any launcher's."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS) and k not in TORCHRUN}
    return {**own, "TMPDIR": str(folder), **more}


def torchrun(rank, size, run="a-run"):
    rank, size = str(rank), str(size)
    return {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": run,
    }


@pytest.mark.parametrize("few", [0, 1])
def test_a_limit_of_open_files_is_named(tmp_path, few):
    joined = False
    for more in range(1, 24):
        ranks = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    LIMITED,
                    tmp_path / f"{more}",
                    str(rank),
                    str(few),
                    str(more),
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(3)
        ]
        said = ranks[few].communicate(timeout=240)[0]
        joined = said == ""
        if joined:
            assert [
                each.communicate(timeout=240)[0] for each in ranks if each is not ranks[few]
            ] == [""] * 2
            break
        for each in ranks:
            each.kill()
            each.communicate(timeout=240)
        assert said.startswith("Unavailable: ") and "file" in said, (more, said)
    assert joined and more > 2


def test_torchruns_variables(tmp_path):
    # Two runs at once, which differ by their name only.
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=environment(tmp_path, **torchrun(rank, 3, run)),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
        for run in ("one", "other")
    ]
    lines = sorted(each.communicate(timeout=240)[0] for each in ranks)
    assert lines == [f"{rank} of 3: 6\n" for rank in (0, 0, 1, 1, 2, 2)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("absent", ["RANK", "WORLD_SIZE"])
def test_a_variable_that_is_absent_is_named(tmp_path, absent):
    variables = environment(tmp_path, **torchrun(1, 2))
    del variables[absent]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, timeout=240
    )
    assert ended.returncode == 1
    assert f"InvalidArgument: world: {absent} isn't set, but other variables of" in ended.stderr


def test_under_mpiexec(tmp_path):
    mpiexec = shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("no mpiexec")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        pytest.skip("mpiexec isn't Open MPI's")
    command = [mpiexec, "--oversubscribe", "--allow-run-as-root", "-n", "3"]
    ended = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM],
        env=environment(tmp_path, OMPI_MCA_plm_rsh_agent="/bin/true"),
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == [f"{rank} of 3: 6" for rank in range(3)]


class Mpi4pyLike:
    """What join_mpi uses of an mpi4py communicator, over a pipe to each other rank."""

    def __init__(self, rank, size, pipes):
        self.rank, self.size, self.pipes = rank, size, pipes

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def bcast(self, given, root):
        assert root == 0
        if self.rank > 0:
            return self.pipes[self.rank][1].recv()
        for _, (first, _) in self.pipes.items():
            first.send(given)
        return given


def meet(rank, pipes, results):
    import numpy as np

    with message.join_mpi(Mpi4pyLike(rank, 3, pipes), deadline=200) as comm:
        results.put((comm.rank, comm.allreduce(np.array([rank]))[0]))


def test_by_an_mpi_communicator():
    context = multiprocessing.get_context("spawn")
    pipes = {rank: context.Pipe() for rank in (1, 2)}
    results = context.Queue()
    ranks = [context.Process(target=meet, args=(rank, pipes, results)) for rank in range(3)]
    for each in ranks:
        each.start()
    assert sorted(results.get(timeout=240) for _ in ranks) == [(0, 3), (1, 3), (2, 3)]
    for each in ranks:
        each.join(240)
        assert each.exitcode == 0


def test_alone_and_not_alone(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(tmp_path, PMI_RANK="0", PMI_SIZE="4"),
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert Unavailable.__name__ in ended.stderr
    assert "this mpiexec has started 4 ranks" in ended.stderr
