# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages_shrink.py: ranks that are left go on without those that were lost.
import multiprocessing
import os
import secrets
import signal
import subprocess
import sys
import textwrap

import numpy as np
from ranks_of_tests import HEAD

import quadriga
from quadriga import message


def keep_going(folder, ranks, body):
    """Runs a body on each rank; those that a signal ends don't end the others."""
    program = folder / "program.py"
    program.write_text(HEAD + textwrap.dedent(body))
    command = [sys.executable, "-m", "quadriga", "launch", "--keep-going", "-n", str(ranks)]
    return subprocess.run(
        [*command, str(program)], capture_output=True, text=True, timeout=240, cwd=folder
    )


def test_survivors_go_on(tmp_path):
    # Rank 2 is lost in a collective, which all others learn; ranks keep their order.
    ended = keep_going(
        tmp_path,
        4,
        """
        sums = []
        while True:
            try:
                for step in range(3):
                    if comm.size == 4 and comm.rank == 2 and step == 1:
                        os.kill(os.getpid(), signal.SIGKILL)
                    sums.append(float(comm.allreduce(np.array([1.0]))[0]))
                break
            except quadriga.PeerLost as error:
                assert error.rank == 2, error
                comm = comm.shrink()
        got = comm.allgather(np.array([float(comm.rank)]))
        print(comm.rank, comm.size, sums[-1], got.tolist())
        """,
    )
    assert ended.returncode == 0, ended.stderr
    assert "rank 2 ended with signal 9" in ended.stderr
    lines = sorted(ended.stdout.splitlines())
    assert lines == [f"{rank} 3 3.0 [[0.0], [1.0], [2.0]]" for rank in range(3)]


def test_who_waits_for_a_survivor_is_woken(tmp_path):
    # Rank 1 waits for rank 0, which lives and will never send: it has gone on without rank 2.
    ended = keep_going(
        tmp_path,
        3,
        """
        if comm.rank == 2:
            comm.recv(np.zeros(1), source=1)
            os.kill(os.getpid(), signal.SIGKILL)
        if comm.rank == 0:
            try:
                comm.recv(np.zeros(1), source=2)
            except quadriga.PeerLost:
                time.sleep(0.2)
                comm = comm.shrink()
        else:
            try:
                comm.send(np.zeros(1), 2)
                comm.recv(np.zeros(1), source=0)
            except quadriga.PeerLost as error:
                print(error)
                comm = comm.shrink()
        print(comm.allreduce(np.array([1.0])).tolist())
        """,
    )
    assert ended.returncode == 0, ended.stderr
    assert "rank 0 has shrunk the communicator, as rank 2 is gone" in ended.stdout
    assert ended.stdout.count("[2.0]") == 2


def test_ranks_lost_at_any_time(tmp_path):
    # All but one rank die one after the other, wherever they are; the rest always agree.
    ended = keep_going(
        tmp_path,
        5,
        """
        random = np.random.default_rng(comm.rank)
        mine = comm.rank
        if mine != 3:
            threading.Timer(0.2 + 0.3 * random.random(), os.kill, (os.getpid(), 9)).start()
        until = time.monotonic() + 1.0
        while comm.size > 1 or time.monotonic() < until:
            try:
                ranks = comm.allgather(np.array([float(mine)]))
                assert ranks.shape[0] == comm.size and ranks[comm.rank, 0] == mine
            except quadriga.PeerLost:
                comm = comm.shrink()
        print(mine, comm.size)
        """,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "3 1\n"


def test_a_world_without_losses(tmp_path):
    ended = keep_going(
        tmp_path,
        2,
        """
        smaller = comm.shrink()
        assert (smaller.rank, smaller.size) == (comm.rank, comm.size)
        assert comm.allreduce(np.array([1.0]))[0] == smaller.allreduce(np.array([1.0]))[0] == 2
        print("good")
        """,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "good\n" * 2


def test_keep_going_reports_failures(tmp_path):
    ended = keep_going(tmp_path, 2, "sys.exit(3 if comm.rank == 1 else 0)")
    assert ended.returncode == 3
    ended = keep_going(tmp_path, 2, "os.kill(os.getpid(), signal.SIGKILL)")
    assert ended.returncode == 128 + signal.SIGKILL


def _rank(address, rank, token, results):
    with message.join(address, rank, 3, token, deadline=30) as comm:
        if rank == 1:
            for other in (0, 2):  # They have come, too.
                comm.recv(np.zeros(1), source=other)
            os.kill(os.getpid(), signal.SIGKILL)
        comm.send(np.zeros(1), 1)
        try:
            comm.allreduce(np.array([1.0]))
        except quadriga.PeerLost:
            comm = comm.shrink()
        results.put((rank, comm.rank, float(comm.allreduce(np.array([1.0]))[0])))


def test_under_multiprocessing(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    address, token = f"file:{tmp_path}/join", secrets.token_hex(16)
    ranks = [spawn.Process(target=_rank, args=(address, r, token, results)) for r in range(3)]
    for each in ranks:
        each.start()
    found = sorted(results.get(timeout=240) for _ in range(2))
    for each in ranks:
        each.join(240)
    assert found == [(0, 0, 2.0), (2, 1, 2.0)]
    assert [each.exitcode for each in ranks] == [0, -signal.SIGKILL, 0]
