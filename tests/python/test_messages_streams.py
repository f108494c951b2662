# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages_streams.py: messages that are ordered with streams of devices.
import threading

import numpy as np
import pytest
from ranks_of_tests import run_ranks

import quadriga
from quadriga import message

GPUS = "emulated:2,memory=16MiB,peer=20GB/s"
HEAD = f"""
    gpus = message.Devices("{GPUS}")
    stream = gpus.stream(comm.rank)
    held = threading.Event()
"""


def test_a_send_comes_after_what_its_stream_holds(tmp_path):
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    values = np.arange(100_000.0)
    if comm.rank == 0:
        a = gpus.array(np.zeros(100_000), device=0)
        stream.call(held.wait)
        stream.call(lambda: a.set(values))
        request = comm.isend(a, 1, tag=1, stream=stream)  # returns: the stream is held
        later = comm.isend(np.ones(3), 1, tag=2)          # overtakes nothing
        assert not request.test() and not later.test()
        assert comm.iprobe(1) is None
        comm.send(np.ones(1), 0, tag=9)                   # to others all goes on
        held.set()
        message.waitall([request, later])
    else:
        b, small = gpus.empty(100_000, device=1), np.empty(3)
        status = comm.probe(0)
        assert status.tag == 1
        comm.recv(b, 0, 1)
        comm.recv(small, 0, 2)
        assert (b.get() == values).all()
    """,
    )


def test_a_receive_comes_after_what_its_stream_holds_and_before_what_it_gets(tmp_path):
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    count = 100_000
    if comm.rank == 0:
        a, host = gpus.array(np.arange(count * 1.0)), np.arange(30.0)
        comm.send(a, 1, tag=1)
        comm.send(host, 1, tag=1)
        comm.send(np.arange(count * 2.0)[::2], 1, tag=1)
    else:
        b, small = gpus.array(np.full(count, -1.0), device=1), gpus.empty(30, device=1)
        large, got = gpus.empty(count, device=1), []
        stream.call(held.wait)
        stream.call(lambda: got.append(b.get()))
        first = comm.irecv(b, 0, 1, stream=stream)   # starts after the call above
        second = comm.irecv(small, 0, 1)             # stays behind the first
        assert not first.test() and not second.test()
        held.set()
        assert first.wait().nbytes == 8 * count
        stream.call(lambda: got.append(b.get()))
        second.wait()
        comm.recv(large, 0, 1, stream=stream)
        stream.call(lambda: got.append(large.get()))
        stream.synchronize()
        assert (got[0] == -1).all()
        assert (got[1] == np.arange(count * 1.0)).all()
        assert (small.get() == np.arange(30.0)).all()
        assert (got[2] == np.arange(count * 2.0)[::2]).all()
    """,
    )


def test_a_stream_waits_in_its_callers_place(tmp_path):
    """A megabyte over a link of 2 MB/s: recv returns long before it has arrived."""
    run_ranks(
        tmp_path,
        2,
        """
    gpus = message.Devices("emulated:2,memory=16MiB,peer=2MB/s")
    if comm.rank == 0:
        a = gpus.array(np.ones(250_000, "f4"))
        comm.send(a, 1)
    else:
        b, stream, seen = gpus.array(np.zeros(250_000, "f4"), 1), gpus.stream(1), []
        request = comm.irecv(b, 0, stream=stream)
        request.wait()
        assert not request.test()
        stream.call(lambda: seen.append(b.get().sum()))
        stream.synchronize()
        assert seen == [250_000]
        del b
    """,
    )


def test_exchange(tmp_path):
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    a = gpus.array(np.full((300, 300), 1.0 + comm.rank), device=comm.rank)
    b, other = gpus.empty((300, 300), device=comm.rank), 1 - comm.rank
    for round in range(5):
        stream.call(lambda: a.set(np.full((300, 300), 10.0 * round + comm.rank)))
        comm.sendrecv(a.T, other, b, other, stream=stream)
        total = []
        stream.call(lambda: total.append(b.get().sum()))
        stream.synchronize()
        assert total == [90_000 * (10.0 * round + other)]
    """,
    )


def test_cancelled_while_a_stream_is_held(tmp_path):
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    a = gpus.array(np.ones(1000), device=comm.rank)
    stream.call(held.wait)
    other = 1 - comm.rank
    requests = [comm.isend(a, other, stream=stream), comm.irecv(a, other, stream=stream)]
    assert all(each.cancel() for each in requests)
    for each in requests:
        try:
            each.wait()
            assert False
        except quadriga.Cancelled:
            pass
    held.set()
    try:
        comm.recv(a, other, stream=stream, deadline=0.1)
        assert False
    except quadriga.Deadline as error:
        assert "recv" in str(error)
    comm.barrier()
    """,
    )


def test_refused():
    gpus = message.Devices("emulated:1,memory=1MiB")
    a = gpus.array(np.ones(10))
    with message.world() as comm:
        with pytest.raises(quadriga.InvalidArgument, match="send: the array is on the host"):
            comm.send(np.ones(3), 0, stream=gpus.stream())
        with pytest.raises(quadriga.InvalidArgument, match="recv: the array is on the host"):
            comm.irecv(np.ones(3), 0, stream=gpus.stream())
        with pytest.raises(quadriga.InvalidType, match="stream is str"):
            comm.isend(a, 0, stream="mine")
        with pytest.raises(quadriga.InvalidArgument, match="isn't one of the devices"):
            comm.isend(a, 0, stream=message.Devices().stream())
        comm.send(a, 0, stream=1)  # a default stream, which emulated devices haven't
        comm.recv(a, 0, stream=1)
        with pytest.raises(quadriga.InvalidArgument, match="device 3; expected 0 to 0"):
            gpus.stream(3)


def test_to_itself():
    gpus = message.Devices("emulated:1,memory=1MiB")
    stream, held = gpus.stream(), threading.Event()
    a, b = gpus.array(np.zeros(10)), gpus.empty(10)
    with message.world() as comm:
        stream.call(held.wait)
        stream.call(lambda: a.set(np.ones(10)))
        with pytest.raises(quadriga.Deadline, match="send to rank 0"):
            comm.send(a, 0, stream=stream, deadline=0.02)
        request = comm.isend(a, 0, stream=stream)
        assert not request.test()
        held.set()
        comm.recv(b, 0, stream=stream)
        request.wait()
    assert b.get().sum() == 10


def test_what_a_busy_stream_holds_up(tmp_path):
    """Neither receives of other messages, nor probes, which know what goes before them."""
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    if comm.rank == 0:
        comm.send(np.ones(10), 1, tag=1)
        comm.send(np.ones(20), 1, tag=2)
    else:
        b, other = gpus.empty(10, device=1), np.empty(20)
        stream.call(held.wait)
        first = comm.irecv(b, 0, 1, stream=stream)
        comm.recv(other, 0, 2)
        assert other.sum() == 20 and not first.test()
        assert comm.iprobe(0, 1) is None
        held.set()
        first.wait()
        stream.synchronize()
        assert b.get().sum() == 10
    comm.barrier()
    """,
    )


def test_a_function_may_be_the_last_to_hold_its_devices(tmp_path):
    """Whose memory and threads end then, after the function."""
    run_ranks(
        tmp_path,
        1,
        """
    held, dropped = threading.Event(), threading.Event()

    class Last:
        def __del__(self):
            dropped.set()

    def queue():
        gpus = message.Devices("emulated:1,memory=1MiB")
        stream, a, last = gpus.stream(), gpus.empty(3), Last()
        stream.call(lambda: (held.wait(), a.set(np.zeros(3)), last))

    queue()
    held.set()
    assert dropped.wait(120)
    gpus = message.Devices("emulated:1,memory=1MiB")
    stream, got = gpus.stream(), []
    stream.call(lambda: got.append(gpus.array(np.ones(3)).get()))
    stream.synchronize()
    assert (got[0] == 1).all()
    """,
    )


OWN = """
    from dataclasses import replace
    from quadriga.message import places
    found = places._on_device

    def with_stream(array, writes):  # as arrays of CuPy have one
        seen = found(array, writes)
        return seen and replace(seen, stream=stream.ptr)

    places._on_device = with_stream

    def raised(call, expected):
        try:
            call()
        except expected as error:
            return str(error)
        raise AssertionError("nothing was raised")
"""


def test_an_arrays_own_stream_is_waited_for_no_longer_than_a_deadline(tmp_path):
    run_ranks(
        tmp_path,
        2,
        HEAD
        + OWN
        + """
    a, other = gpus.array(np.full(1000, 1.0 + comm.rank), device=comm.rank), 1 - comm.rank
    host = np.zeros(1000)
    stream.call(held.wait)
    stream.call(lambda: a.set(np.full(1000, 5.0 + comm.rank)))
    raised(lambda: comm.recv(a, other, deadline=0.05), quadriga.Deadline)
    raised(lambda: comm.send(a, other, deadline=0.05), quadriga.Deadline)
    request = comm.isend(a, other)  # returns: the stream is held
    started = comm.iallreduce(a, total := gpus.empty(1000, device=comm.rank))
    plan = comm.plan([(a, other, 3)], [(host, other, 3)])
    plan.start()
    raised(lambda: plan.wait(deadline=0.05), quadriga.Deadline)
    raised(lambda: started.wait(deadline=0.05), quadriga.Deadline)
    assert not request.test()
    held.set()
    plan.wait()
    assert (host == 5.0 + other).all()
    comm.recv(host, other)
    assert (host == 5.0 + other).all()
    request.wait()
    started.wait()
    assert (total.get() == 11).all()
    part = comm.Split()
    held.clear()
    stream.call(held.wait)
    if comm.rank == 0:
        said = raised(lambda: part.bcast(a, deadline=0.05), quadriga.Deadline)
        assert "the stream of its array" in said, said
    else:
        raised(lambda: part.bcast(host, deadline=20), quadriga.Cancelled)
    comm.barrier()
    held.set()
    """,
    )


def test_ctrl_c_ends_the_wait_for_an_arrays_own_stream(tmp_path):
    run_ranks(
        tmp_path,
        1,
        HEAD
        + OWN
        + """
    a = gpus.array(np.ones(1000))
    stream.call(held.wait)
    for call in (
        lambda: comm.send(a, 0),
        lambda: comm.recv(a, 0),
        lambda: comm.Split().allreduce(a, a),
    ):
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        raised(call, KeyboardInterrupt)
    held.set()
    """,
    )
