# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_message_tasks.py: messages as tasks: order, results, failures, ends.
import json
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from paces_of_tests import becomes
from ranks_of_tests import launched, run_ranks

import quadriga
from quadriga import message, report
from quadriga.report.analysis.world import join

DEVICES = ["cpu:2", "emulated:2,memory=64KiB"]

HEAD = """
@quadriga.codelet(access=["update"])
def more(x):
    x += 1

engine = quadriga.Engine({devices!r})
tasks = comm.tasks(engine)
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
"""


def ranks(folder, count, devices, body):
    return run_ranks(folder, count, HEAD.format(devices=devices) + textwrap.dedent(body))


@pytest.fixture(params=DEVICES)
def devices(request):
    return request.param


@pytest.fixture
def alone():
    with message.world() as comm:
        yield comm


def test_a_message_is_ordered_with_the_tasks_on_its_data(tmp_path, devices):
    said = ranks(
        tmp_path,
        3,
        devices,
        """
        a, b = np.full(3000, float(comm.rank)), np.zeros(3000)
        x, y = engine.data(a), engine.data(b)
        engine.submit(more, x.update())
        received = tasks.recv(y, left, 4)
        sent = tasks.send(x, right, 4)
        engine.submit(more, x.update())   # after it was sent
        engine.submit(more, y.update())   # after it was received
        engine.wait()
        status = received.result()
        assert (status.source, status.tag, status.nbytes) == (left, 4, 24000), status
        assert sent.result() is None
        assert (a == comm.rank + 2).all() and (b == left + 2).all()
        print("right")
        """,
    )
    assert said.count("right") == 3


def test_tasks_and_calls_meet(tmp_path):
    ranks(
        tmp_path,
        2,
        "cpu:1",
        """
        a = np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3))
        b = np.zeros((2, 3), np.int16)
        if comm.rank == 0:
            tasks.send(engine.data(a), 1, 3).result()
            comm.send(a, 1, 4)
        else:
            comm.recv(b, 0, 3)
            assert (a == b).all(), b
            c = np.zeros((2, 3), np.int16, order="F")
            tasks.recv(engine.data(c), 0, 4).result()
            assert (a == c).all(), c
        """,
    )


def test_collectives(tmp_path, devices):
    ranks(
        tmp_path,
        3,
        devices,
        """
        own = np.arange(6.0) + comm.rank
        x = engine.data(own.copy())
        y, all_of = engine.data(np.zeros(6)), engine.data(np.zeros((3, 6)))
        part, root = engine.data(np.zeros(2)), comm.rank == 1
        made = [
            tasks.allreduce(x, y),
            tasks.allgather(x, all_of),
            tasks.barrier(),
            tasks.scatter(y if root else None, part, root=1),
        ]
        engine.submit(more, x.update())
        made += [tasks.bcast(x, root=2), tasks.reduce(part, op="max", root=1)]
        engine.wait()
        whole = np.array([np.arange(6.0) + rank for rank in range(3)])
        assert (np.asarray(y) == whole.sum(0)).all()
        assert (np.asarray(all_of) == whole).all()
        assert (np.asarray(x) == whole[2] + 1).all()
        mine = whole.sum(0)[2 * comm.rank : 2 * comm.rank + 2]
        assert (np.asarray(part) == (whole.sum(0)[4:] if root else mine)).all()
        z, mixed = engine.data(np.full(3, float(comm.rank))), engine.data(np.zeros(3))
        tasks.alltoall(z, mixed)
        tasks.gather(z, all3 := engine.data(np.zeros((3, 3))), root=0) if comm.rank == 0 else (
            tasks.gather(z, root=0)
        )
        tasks.allreduce(z)
        engine.wait()
        assert (np.asarray(mixed) == [0, 1, 2]).all()
        assert (np.asarray(z) == 3).all()
        if comm.rank == 0:
            assert (np.asarray(all3) == np.array([[0] * 3, [1] * 3, [2] * 3])).all()
        """,
    )


def test_ranks_whose_collectives_differ_all_fail(tmp_path):
    said = ranks(
        tmp_path,
        2,
        "cpu:1",
        """
        x = engine.data(np.zeros(3 + comm.rank))
        after = engine.submit(more, x.update())
        try:
            tasks.allreduce(x).result()
        except quadriga.InvalidArgument as error:
            print("differ" if "rank 1: allreduce of 4 float64" in str(error) else error)
        try:
            engine.wait()
        except quadriga.InvalidArgument:
            print("again")
        comm.barrier()
        """,
    )
    assert said.split().count("differ") == 2
    assert said.split().count("again") == 2


def test_a_lost_rank_ends_what_waits_for_it(tmp_path):
    ended = launched(
        tmp_path,
        2,
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        engine = quadriga.Engine("cpu:1")
        tasks = comm.tasks(engine)
        x, y = engine.data(np.zeros(5000)), engine.data(np.zeros(5000))
        if comm.rank == 1:
            comm.recv(np.zeros(1), 0)
            os.kill(os.getpid(), signal.SIGKILL)
        waiting = [tasks.recv(x, 1, 1), tasks.send(x, 1, 2), tasks.allreduce(y)]
        comm.send(np.zeros(1), 1)
        for each in waiting:
            try:
                each.result(240)
            except Exception as error:
                print(type(error).__name__, getattr(error, "rank", ""))
        try:
            engine.wait()
        except ConnectionError as error:
            print("wait", type(error).__name__, error.rank)
        sys.stdout.flush()
        """,
    )
    assert ended.stdout.splitlines() == [
        "PeerLost 1", "Cancelled ", "PeerLost 1", "wait PeerLost 1",
    ], ended  # fmt: skip


def test_a_rank_that_cannot_take_part_tells_the_others(tmp_path):
    said = ranks(
        tmp_path,
        2,
        "cpu:1",
        """
        @quadriga.codelet(access=["update"])
        def fails(x):
            raise KeyError("no")

        x = engine.data(np.zeros(3))
        if comm.rank == 0:
            engine.submit(fails, x.update())
        try:
            tasks.allreduce(x).result()
        except quadriga.Cancelled as error:
            print("cancelled")
        comm.barrier()  # of calls
        engine.close()
        """,
    )
    assert said.split() == ["cancelled"] * 2


def test_a_deadline_of_a_message_is_its_own(alone, devices):
    with quadriga.Engine(devices) as engine:
        x = engine.data(np.zeros(3))
        late = alone.tasks(engine).recv(x, 0, 1, deadline=0.05)
        after = alone.tasks(engine).send(x, 0, 1)
        with pytest.raises(TimeoutError, match="recv from rank 0, tag 1 was not possible") as found:
            late.result(240)
        assert found.value.of_task
        assert isinstance(after.exception(240), quadriga.Cancelled)
        with pytest.raises(quadriga.Deadline):
            engine.wait()
        engine.wait()


def test_a_future_withdraws_its_message(alone, devices):
    with quadriga.Engine(devices) as engine:
        tasks = alone.tasks(engine)
        x = engine.data(np.zeros(3))
        future = tasks.recv(x, 0, 1)
        with pytest.raises(quadriga.Deadline) as found:
            future.result(0.01)
        assert not found.value.of_task
        assert future.cancel()
        assert future.cancelled()
        with pytest.raises(quadriga.Cancelled):
            future.result()
        engine.wait(120)
        arrived = tasks.recv(x, 0, 2)
        tasks.send(engine.data(np.ones(3)), 0, 2)
        arrived.result(240)
        assert not arrived.cancel()


def test_results_of_receives_go_to_other_tasks(alone, devices):
    @quadriga.codelet(access=["read"])
    def source_of(x, status):
        return status.source, status.tag

    with quadriga.Engine(devices) as engine:
        tasks = alone.tasks(engine)
        x = engine.data(np.zeros(3))
        status = tasks.recv(x)
        found = engine.submit(source_of, x.read(), status=status)
        tasks.send(engine.data(np.ones(3)), 0, 9)
        assert found.result(240) == (0, 9)


def test_an_engine_ends_with_messages_that_nobody_sends(alone, devices):
    engine = quadriga.Engine(devices)
    tasks = alone.tasks(engine)
    x = engine.data(np.zeros(3))
    future, behind = tasks.recv(x, 0, 1), tasks.send(x, 0, 2)
    engine.cancel()
    assert isinstance(future.exception(), quadriga.Cancelled)
    future = tasks.recv(x, 0, 1)
    engine.close()
    assert isinstance(future.exception(), quadriga.Cancelled)
    assert isinstance(behind.exception(), quadriga.Cancelled)


def test_python_ends_with_messages_that_nobody_sends(tmp_path):
    ended = launched(
        tmp_path,
        2,
        """
        engine = quadriga.Engine("cpu:1")
        tasks = comm.tasks(engine)
        x, y = engine.data(np.zeros(3)), engine.data(np.zeros(3))
        tasks.recv(x, comm.rank, 1)
        tasks.allreduce(y) if comm.rank else None
        """,
        timeout=240,
    )
    assert ended.returncode == 0, ended


def test_what_is_no_message_is_refused(alone):
    with quadriga.Engine("cpu:1") as engine, quadriga.Engine("cpu:1") as other:
        tasks = alone.tasks(engine)
        x = engine.data(np.zeros(3))
        for call, words in (
            (lambda: tasks.send(np.zeros(3), 0), "expected data of the engine"),
            (lambda: tasks.send(other.data(np.zeros(3)), 0), "another engine"),
            (lambda: tasks.send(x, 1), "rank 1; expected 0 to 0"),
            (lambda: tasks.send(x, -1), "rank -1; expected 0 to 0"),
            (lambda: tasks.send(x, 0, -1), "tag is -1"),
            (lambda: tasks.recv(x, 0, -2), "tag -2"),
            (lambda: tasks.bcast(x, root=3), "root 3"),
            (lambda: tasks.allreduce(x, op="mean"), "no operation 'mean'"),
            (lambda: tasks.gather(x), "recvdata of the root"),
        ):
            with pytest.raises(quadriga.InvalidArgument, match=words):
                call()
        frozen = np.zeros(3)
        frozen.flags.writeable = False
        with pytest.raises(quadriga.InvalidArgument, match="read-only"):
            tasks.recv(engine.data(frozen), 0)
        engine.wait(120)
    with (
        quadriga.Engine("emulated:1,memory=1MiB", virtual_clock=True) as simulated,
        pytest.raises(quadriga.Unavailable, match="virtual clock"),
    ):
        alone.tasks(simulated).barrier()


def test_one_engine_at_a_time_has_the_collectives_of_a_communicator(alone):
    with quadriga.Engine("cpu:1") as engine:
        alone.tasks(engine).barrier().result(240)
        with (
            quadriga.Engine("cpu:1") as other,
            pytest.raises(quadriga.InvalidArgument, match="another engine"),
        ):
            alone.tasks(other).barrier()
    with quadriga.Engine("cpu:1") as engine:
        alone.tasks(engine).barrier().result(240)


def test_messages_are_counted_traced_and_told(alone, devices, tmp_path):
    path = tmp_path / "trace.json"
    with quadriga.Engine(devices, trace=path) as engine:
        tasks = alone.tasks(engine)
        x, y = engine.data(np.zeros(30)), engine.data(np.zeros(30))
        waiting = tasks.recv(y, 0, 5)
        with pytest.raises(quadriga.Deadline):
            waiting.result(0.01)
        told = "recv from 0, tag 5, 240 bytes, task 1: since"
        assert becomes(lambda: told in engine.status())  # once it has begun
        tasks.send(x, 0, 5)
        tasks.allreduce(x)
        tasks.barrier()
        engine.wait(120)
        assert "messages" not in engine.status()
        counted = engine.counters().messages
        assert (counted.sent, counted.received, counted.collectives) == (1, 1, 2)
        assert (counted.bytes_sent, counted.bytes_received) == (240, 240)
        engine.reset_counters()
        assert engine.counters().messages.sent == 0
        tasks.recv(y)
        tasks.send(x, 0, 6)
    found = json.loads(path.read_text())
    events = [each for each in found["traceEvents"] if each.get("cat") == "message"]
    args = {each["name"]: each["args"] for each in events}
    assert set(args) == {"recv from any", "send to 0"}
    assert args["send to 0"]["bytes"] == 240
    assert (args["recv from any"]["from"], args["recv from any"]["tag"]) == (0, 6)
    assert found["quadriga"]["world"]["size"] == 1
    assert report.check(report.load(path)) == []


def test_traces_of_ranks_make_one_page_with_arrows(tmp_path):
    ranks(
        tmp_path,
        3,
        "cpu:1",
        """
        engine.close()
        for shape in (3000, 3):
            with quadriga.Engine("cpu:1", trace=f"trace.{comm.rank}.json") as engine:
                tasks = comm.tasks(engine)
                x, y = engine.data(np.zeros(3000)), engine.data(np.zeros(3000))
                for _ in range(3):
                    engine.submit(more, x.update())
                    tasks.recv(y, left, 4)
                    tasks.send(x, right, 4)
                tasks.allreduce(y)
        """,
    )
    traces = [report.load(tmp_path / f"trace.{rank}.json") for rank in range(3)]
    world = join(traces)
    assert world.unmatched == 0
    pairs = [(arrow.source, arrow.target, arrow.bytes) for arrow in world.arrows]
    assert sorted(pairs) == [(r, (r + 1) % 3, 24000) for r in range(3) for _ in range(3)]
    assert all(arrow.start <= arrow.end <= world.end for arrow in world.arrows)
    html = report.to_world_html(traces)
    assert html.count('class="arrow"') == 9
    assert "https://" not in html
    assert "rank 2" in html
    headings = re.findall("<h2>(.*?)</h2>", html)
    assert headings == ["Timeline of kernels and messages", "Tasks and messages of each rank"]
    page = tmp_path / "report.html"
    files = [str(tmp_path / f"trace.{rank}.json") for rank in (2, 0, 1)]
    command = [sys.executable, "-m", "quadriga", "report", *files, "-o", str(page)]
    subprocess.run(command, check=True, timeout=240)
    assert page.read_text().count("<line") == html.count("<line")
    refused = subprocess.run([*command, "--json"], capture_output=True, timeout=240)
    assert refused.returncode == 2
    with pytest.raises(report.TraceError, match="is of rank 0"):
        join([traces[0], traces[0]])


def test_unmatched_receives_hold_no_memory_of_full_devices(tmp_path):
    """Both ranks' receives come first, and none is matched before sends that need all memory."""
    run_ranks(
        tmp_path,
        2,
        """
    @quadriga.codelet(access=["update", "read"], host_only=False)
    def add(x, y):
        x += y

    # As much as one `add` needs, and half a tile.
    devices, count, other = "emulated:1,memory=2560KiB", 131_072, 1 - comm.rank
    with quadriga.Engine(devices) as engine:
        tasks = comm.tasks(engine)
        arrays = [np.zeros(count) for _ in range(8)]
        arrived = [engine.data(each) for each in arrays]
        busy = [engine.data(np.full(count, 1.0 * i)) for i in range(8)]
        own = [np.full(count, 10.0 * i) for i in range(8)]
        more = [engine.data(each) for each in own]
        for i, data in enumerate(arrived):
            tasks.recv(data, other, tag=i)
            engine.submit(add, data.update(), more[i].read())  # follows its receive
        comm.barrier()
        for i in range(1, 8):  # runs while no receive is matched, in all of the memory
            engine.submit(add, busy[i].update(), busy[i - 1].read())
        engine.wait_data(busy[-1], timeout=120)
        device = engine.counters().devices[0]
        assert device.tasks == 7 and device.most_bytes >= 2 << 20, device
        while engine.status().count(f"recv from {other}, tag") != 8:  # until all have begun
            time.sleep(0.01)
        comm.barrier()
        for i, data in reversed(list(enumerate(busy))):
            tasks.send(data, other, tag=i)
        engine.wait(timeout=120)
        sums = np.cumsum(np.arange(8.0))
        for i, array in enumerate(arrays):
            assert (array == sums[i] + 10.0 * i).all()
    """,
    )
