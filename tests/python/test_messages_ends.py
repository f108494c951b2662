# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages_ends.py: how ranks end, and what the others see of it.
import signal
import subprocess
import sys
import time
from pathlib import Path

from paces_of_tests import at_some_pace
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
            # At once: the other survivor writes too.
            sys.stdout.write(f"{type(error).__name__} {error.rank} {error}\\n")
            sys.stdout.flush()
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
        "sleep 1000 &\necho $! > child\nwait\n"
    )
    command = [sys.executable, "-m", "quadriga", "launch", "-n", "2", "sh", str(script)]
    assert subprocess.run(command, cwd=tmp_path, timeout=240).returncode == 3
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not is_running(child))


def is_running(process):
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ranks_end_when_their_launcher_is_killed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, time\n"
        "name = os.environ['QUADRIGA_LAUNCH_RANK']\n"
        "open(name + '.new', 'w').write(str(os.getpid())); os.rename(name + '.new', name)\n"
        "time.sleep(1000)\n"
    )
    command = [sys.executable, "-m", "quadriga", "launch", "-n", "3", str(program)]
    launcher = subprocess.Popen(command, cwd=tmp_path)
    try:
        files = [tmp_path / str(rank) for rank in range(3)]
        wait_until(lambda: all(each.exists() for each in files))
        ranks = [int(each.read_text()) for each in files]
        assert all(map(is_running, ranks))
    finally:
        launcher.kill()
        launcher.wait()
    wait_until(lambda: not any(map(is_running, ranks)))


def test_ctrl_c_reaches_the_ranks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "comm.deadline = None\n"
        "def note(end):\n"
        "    open(f'{type(end).__name__}-{comm.rank}', 'w').close()\n"
        "def wait():\n"
        "    try:\n"
        "        open(f'ready-{comm.rank}', 'w').close()\n"
        "        comm.recv(np.zeros(1))\n"
        "    except (KeyboardInterrupt, quadriga.PeerLost) as end:\n"
        "        note(end)\n"
        "try:\n    wait()\n"
        "except KeyboardInterrupt as end:  # while it notes that the other has left\n"
        "    note(end)\n"
    )
    command = [sys.executable, "-m", "quadriga", "launch", "-n", "2", str(program)]
    launcher = subprocess.Popen(command, cwd=tmp_path)
    try:
        wait_until(lambda: len(list(tmp_path.glob("ready-*"))) == 2)
        launcher.send_signal(signal.SIGINT)
        assert launcher.wait(240) == 1
    finally:
        launcher.kill()
        launcher.wait()
    # Who is interrupted first leaves, which the other may notice before its own interrupt.
    ends = sorted(path.name for path in tmp_path.glob("*-?") if "ready" not in path.name)
    assert len(ends) == 2 and any("KeyboardInterrupt" in each for each in ends), ends


def test_a_long_folder_of_temporary_files(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    assert run_ranks(tmp_path, 2, "comm.barrier(); print('met')") == "met\n" * 2


def wait_until(holds, seconds=240):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_launch_without_a_program(tmp_path):
    command = [sys.executable, "-m", "quadriga", "launch", "-n", "2"]
    assert subprocess.run(command, capture_output=True, timeout=240).returncode == 2
    ended = subprocess.run([*command, "/no/such/program"], capture_output=True, timeout=240)
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
            open("closed", "w").close()
        else:
            comm.probe(0, 9)  # and doesn't receive it
            while not os.path.exists("closed"):
                time.sleep(0.02)
        """,
    )
    assert ended.returncode == 0
    assert "closed before these were received: send to rank 1, tag 9" in ended.stderr


def test_a_warning_of_many_messages_names_a_few(tmp_path):
    ended = launched(
        tmp_path,
        2,
        """
        if comm.rank == 0:
            for tag in range(50):
                comm.isend(np.zeros(10000), 1, tag)
            comm.close(deadline=0.1)
            open("closed", "w").close()
        else:
            comm.probe(0, 9)  # and receives none
            while not os.path.exists("closed"):
                time.sleep(0.02)
        """,
    )
    assert ended.returncode == 0
    assert "send to rank 1, tag 7 and 42 more\n" in ended.stderr
    assert "tag 8" not in ended.stderr


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
            open("too-late", "w").close()
            comm.send(data + 1, 1, 1)
        else:
            while not os.path.exists("too-late"):
                time.sleep(0.02)
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
        + "try:\n    print('waits', flush=True)\n    comm.recv(np.zeros(3), 0)\n"
        + "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        + "comm.send(np.ones(3), 0); got = np.zeros(3); comm.recv(got, 0); print(got.sum())\n"
    )
    process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waits\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert out == "interrupted\n3.0\n"


def test_ctrl_c_ends_closing(tmp_path):
    ended = launched(
        tmp_path,
        2,
        """
        flag = np.zeros(1)
        if comm.rank == 0:
            comm.isend(np.zeros(100000), 1, tag=9)  # nobody receives it
            begin = time.monotonic()
            try:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                comm.close(deadline=200)
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - begin < 120, flush=True)
        else:
            try:
                comm.recv(flag, 0, 1)
            except quadriga.PeerLost as error:
                assert "has left" in str(error)
        """,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "interrupted True\n"


DEADLINES = """
comm.deadline = 100
large = np.zeros(100000)
if comm.rank == 0:
    # 1 receives the first part late, and sends nothing.
    begin = time.monotonic()
    try:
        comm.sendrecv(large, 1, np.zeros(1), 1, deadline=2 * pace)
    except TimeoutError as error:
        assert f"within {2 * pace} s" in str(error), error
    else:
        raise AssertionError("in time")
    assert time.monotonic() - begin > 2 * pace - 0.01
    requests = [comm.irecv(np.zeros(1), 1, tag) for tag in (1, 2)]
    comm.barrier()
    begin = time.monotonic()
    try:
        message.waitall(requests, deadline=2 * pace)
    except TimeoutError as error:
        assert f"within {2 * pace} s" in str(error), error
    else:
        raise AssertionError("in time")
    assert time.monotonic() - begin > 2 * pace - 0.01
    comm.barrier()
else:
    time.sleep(0.3 * pace)
    comm.recv(large, 0)
    comm.barrier()
    time.sleep(0.3 * pace)
    comm.send(np.zeros(1), 0, 1)
    comm.barrier()
"""


def test_deadlines_of_several_waits_count_once(tmp_path):
    def counted_once(pace):
        run_ranks(tmp_path, 2, f"pace = {pace}\n{DEADLINES}")

    at_some_pace(counted_once, (1, 4, 16))


def test_what_a_sent_array_does_at_its_end_may_call_the_communicator(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        import weakref
        ended = threading.Event()
        if comm.rank == 0:
            for strided in (False, True):
                data = np.zeros(100000)
                weakref.finalize(data, lambda: (comm.iprobe(), ended.set()))
                comm.isend(data[::2] if strided else data, 1)  # and forgets it
                del data
                assert ended.wait(120)
                ended.clear()
        else:
            for count in (100000, 50000):
                comm.recv(np.zeros(count), 0)
        comm.barrier()  # Nobody leaves before it has probed.
        """,
    )


def test_messages_move_while_their_owner_keeps_the_lock_of_python(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        large = np.zeros(400000)
        if comm.rank == 0:
            # Strided ones need their sender, who computes.
            sent = [np.zeros((400000, 2))[:, 0] for _ in range(2)]
            flag = np.memmap("flag", np.uint8, "w+", shape=1)
            sys.setswitchinterval(1000)  # nobody else gets it while this computes
            forgotten, other = [comm.isend(each, 1, tag) for tag, each in enumerate(sent, 1)]
            del forgotten, sent
            comm.send(np.zeros(1), 1)
            until = time.perf_counter() + 200
            while not flag[0] and time.perf_counter() < until:
                pass
            assert flag[0]
        else:
            comm.recv(np.zeros(1), 0, 0)
            flag = np.memmap("flag", np.uint8, "r+", shape=1)
            for tag in (1, 2):
                comm.recv(large, 0, tag)
                time.sleep(0.2)
            flag[0] = 1
        """,
    )
