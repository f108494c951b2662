# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages_ends.py: how ranks end, and what the others see of it.
import signal
import subprocess
import sys
import time
from pathlib import Path

from ranks_of_tests import HEAD, launched, run_ranks


def test_survivors_name_the_lost_rank_and_their_operation(tmp_path):
    # A launcher ends all when one fails; these survive because they ask to.
    ended = launched(
        tmp_path,
        3,
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if comm.rank == 1:
            for other in (0, 2):
                comm.recv(np.zeros(1), other)
            os.kill(os.getpid(), signal.SIGKILL)
        comm.send(np.zeros(1), 1)
        try:
            if comm.rank == 0:
                comm.recv(np.zeros(3), 1, 8)
            else:
                comm.allreduce(np.zeros(3))
        except ConnectionError as error:
            print(type(error).__name__, error.rank, error, flush=True)
        """,
    )
    lines = sorted(ended.stdout.splitlines())
    assert len(lines) == 2, ended
    assert lines[0].startswith("PeerLost 1 allreduce")
    assert lines[1] == "PeerLost 1 recv from rank 1, tag 8: rank 1 is lost: it has ended"
    assert ended.returncode == 128 + signal.SIGKILL
    assert "rank 1 ended with signal 9" in ended.stderr


def test_launch_ends_all_when_one_fails(tmp_path):
    ended = launched(
        tmp_path,
        3,
        """
        if comm.rank == 2:
            sys.exit(7)
        time.sleep(50)
        """,
    )
    assert ended.returncode == 7
    assert "rank 2 ended with status 7" in ended.stderr


def test_launch_ends_what_its_programs_started(tmp_path):
    script = tmp_path / "script.sh"
    script.write_text(
        'if [ "$QUADRIGA_LAUNCH_RANK" = 1 ]; then\n'
        "while [ ! -s child ]; do sleep 0.05; done; exit 3; fi\n"
        "sleep 100 &\necho $! > child\nwait\n"
    )
    command = [sys.executable, "-m", "quadriga", "launch", "-n", "2", "sh", str(script)]
    assert subprocess.run(command, cwd=tmp_path, timeout=60).returncode == 3
    child = int((tmp_path / "child").read_text())
    status = Path(f"/proc/{child}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"


def test_launch_without_a_program(tmp_path):
    command = [sys.executable, "-m", "quadriga", "launch", "-n", "2"]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 2
    ended = subprocess.run([*command, "/no/such/program"], capture_output=True, timeout=60)
    assert ended.returncode == 1
    assert b"No such file" in ended.stderr


def test_pending_sends_complete_at_exit(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        data = np.arange(100000.0)
        if comm.rank == 0:
            comm.isend(data, 1)  # and ends
        else:
            time.sleep(0.2)
            got = np.zeros_like(data)
            comm.recv(got)
            assert (got == data).all()
        """,
    )


def test_sends_that_nobody_receives_are_reported_at_exit(tmp_path):
    ended = launched(
        tmp_path,
        2,
        """
        if comm.rank == 0:
            comm.isend(np.zeros(100000), 1, tag=9)
            comm.close(deadline=0.1)
        else:
            comm.probe(0, 9)  # and doesn't receive it
            time.sleep(1)
        """,
    )
    assert ended.returncode == 0
    assert "closed before these were received: send to rank 1, tag 9" in ended.stderr


def test_python_ends_with_communicators_and_requests_alive(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        waiting = [comm.irecv(np.zeros(10 ** k), tag=k) for k in (0, 5)]
        other = comm.Split(0)
        comm.barrier()
        threading.Thread(target=lambda: time.sleep(0.1)).start()
        """,
    )


def test_a_rank_that_has_left_is_named(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        if comm.rank == 0:
            comm.send(np.ones(2), 1)
            sys.exit()
        got = np.zeros(2)
        comm.recv(got, 0)
        for call in (lambda: comm.recv(got, 0), lambda: comm.recv(got), comm.barrier):
            try:
                call()
            except quadriga.PeerLost as error:
                assert "rank 0 has left the communicator" in str(error)
            else:
                raise AssertionError("nothing was wrong")
        """,
    )


def test_a_deadline_leaves_the_communicator_usable(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        data = np.arange(100000.0)
        if comm.rank == 0:
            for call in (lambda: comm.send(data, 1, 1, deadline=0.05),
                         lambda: comm.recv(data, 1, 2, deadline=0.05)):
                try:
                    call()
                except TimeoutError as error:
                    assert "rank 1: isn't inside a call" in str(error) or "rank 1:" in str(error)
                else:
                    raise AssertionError("in time")
            comm.send(data + 1, 1, 1)
        else:
            time.sleep(0.5)
            got = np.zeros_like(data)
            comm.recv(got, 0, 1)
            assert (got == data + 1).all()
        """,
    )


def test_a_child_after_fork_is_refused_and_leaves_the_parent_alone(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        child = os.fork()
        if child == 0:
            try:
                comm.send(np.zeros(3), 1 - comm.rank)
            except quadriga.Unavailable:
                os._exit(5)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
        if os.fork() == 0:
            sys.exit()  # Python's end in a child doesn't close the parent's world
        os.wait()
        assert comm.allreduce(np.ones(1))[0] == 2
        """,
    )


def test_ctrl_c_ends_a_wait(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        HEAD
        + "comm = message.world()\n"
        + "print('waits', flush=True)\n"
        + "try:\n    comm.recv(np.zeros(3), 0)\n"
        + "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        + "comm.send(np.ones(3), 0); got = np.zeros(3); comm.recv(got, 0); print(got.sum())\n"
    )
    process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waits\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert out == "interrupted\n3.0\n"
