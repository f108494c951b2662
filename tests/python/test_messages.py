# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages.py: messages between processes: arrays, requests, collectives.
import multiprocessing

import numpy as np
import pytest
from ranks_of_tests import run_ranks

from quadriga import message
from quadriga.errors import Deadline, InvalidArgument, InvalidType


def test_arrays_of_any_kind_and_strides(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        random = np.random.default_rng(3)
        kinds = ["f8", "f4", "f2", "c8", "c16", "i1", "u2", "i8", "?", "M8[s]", "S3", "f4,i2"]
        for kind in kinds:
            for count in (0, 1, 60, 40000):
                data = np.frombuffer(random.bytes(2 * count * np.dtype(kind).itemsize), kind)
                for view in (lambda a: a[:count], lambda a: a[::2], lambda a: a[:count][::-1]):
                    if comm.rank == 0:
                        comm.send(view(data), 1, tag=4)
                    else:
                        got = np.zeros_like(data)
                        status = comm.recv(view(got), 0, 4)
                        assert view(got).tobytes() == view(data).tobytes(), (kind, count)
                        assert status.nbytes == view(data).nbytes
        """,
    )


def test_a_transpose_and_a_layout(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        for n in (5, 300):
            a = np.arange(float(n * n)).reshape(n, n)
            half = Layout.triangle(n, "f8")
            if comm.rank == 0:
                comm.send(a, 1)
                comm.send(a, 1, layout=half)
            else:
                b = np.zeros((n, n))
                comm.recv(b.T, 0)
                assert (b == a.T).all()
                b[:] = 0
                comm.recv(b, 0, layout=half)
                assert (b == np.tril(a)).all()
        """,
    )


def test_requests_and_wildcards(tmp_path):
    run_ranks(
        tmp_path,
        3,
        """
        data = np.full(50000, float(comm.rank))
        if comm.rank == 0:
            arrays = [np.zeros(50000) for _ in range(2)]
            requests = [comm.irecv(array, tag=5) for array in arrays]
            found = message.waitall(requests)
            assert sorted(each.source for each in found) == [1, 2]
            assert all((a == each.source).all() for a, each in zip(arrays, found))
            assert all(each.test() for each in requests)
            assert comm.probe(message.ANY_SOURCE, 6).source == 1
            assert comm.iprobe(2, 9) is None
            small = np.zeros(3)
            assert comm.recv(small, 1).tag == 6
            waiting = comm.irecv(small, 1, 7)
            assert not waiting.test() and waiting.cancel() and not waiting.cancel()
        else:
            comm.isend(data, 0, 5)  # dropped: it goes on
            if comm.rank == 1:
                comm.send(data[:3], 0, 6)
        right, left = (comm.rank + 1) % 3, (comm.rank - 1) % 3
        got = np.zeros_like(data)
        comm.sendrecv(data, right, got, left)
        assert (got == left).all()
        """,
    )


def test_collectives(tmp_path):
    run_ranks(
        tmp_path,
        4,
        """
        n = comm.size
        a = np.arange(6.0).reshape(2, 3) + comm.rank
        base = np.arange(6.0).reshape(2, 3)
        assert (comm.allreduce(a) == n * base + 6).all()
        assert (comm.allreduce(a.T, op="max") == (base + 3).T).all()
        total = comm.reduce(a, op="sum", root=2)
        assert (total is None) == (comm.rank != 2)
        everything = comm.gather(a, root=1)
        if comm.rank == 1:
            assert everything.shape == (n, 2, 3)
            assert (everything[3] == base + 3).all()
        part = np.zeros((2, 3))
        comm.scatter(everything, part, root=1)
        assert (part == a).all()
        assert (comm.allgather(a)[2] == base + 2).all()
        table = np.arange(n) + 10 * comm.rank
        assert (comm.alltoall(table) == 10 * np.arange(n) + comm.rank).all()
        where = np.zeros((4, 4))
        comm.bcast(np.ones(4) if comm.rank == 0 else where[:, 1])
        assert comm.rank == 0 or (where[:, 1] == 1).all() and where.sum() == 4
        half = comm.Split(comm.rank // 2)
        assert half.allreduce(np.array([comm.rank]))[0] == (1 if comm.rank < 2 else 5)
        assert (comm.Split(-1 if comm.rank else 0) is None) == (comm.rank > 0)
        comm.barrier()
        """,
    )


def test_collectives_that_disagree_raise_on_all_ranks(tmp_path):
    run_ranks(
        tmp_path,
        3,
        """
        try:
            comm.bcast(np.zeros(3), root=comm.rank % 2)
        except quadriga.InvalidArgument as error:
            assert "rank 1: bcast of 3 float64, root 1" in str(error), error
        else:
            raise AssertionError("nothing was wrong")
        assert comm.allreduce(np.ones(1))[0] == 3
        """,
    )


def test_a_rank_that_cannot_take_part_ends_the_collective_on_all(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        fixed = np.zeros(3)
        fixed.flags.writeable = False
        odd = comm.rank == 1
        calls = [
            lambda: comm.allreduce(np.zeros(3), op="sumx" if odd else "sum"),
            lambda: comm.bcast(fixed if odd else np.ones(3)),
            lambda: comm.allgather(np.array([{}]) if odd else np.ones(1), np.zeros(2)),
        ]
        for call in calls:
            try:
                call()
            except quadriga.InvalidArgument as error:
                assert odd or "rank 1: " in str(error), error
            else:
                raise AssertionError("nothing was wrong")
        comm.barrier()
        """,
    )


def test_numbers_that_are_none_are_named_on_all_ranks(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        a, b = np.ones(4), np.zeros(4)
        wrong = "one" if comm.rank == 1 else 0
        calls = {
            "root": [lambda: comm.bcast(b, wrong), lambda: comm.reduce(a, b, "sum", wrong),
                     lambda: comm.gather(a, None, wrong), lambda: comm.scatter(a, b[:2], wrong),
                     lambda: comm.gatherv(a, None, [4, 4], None, wrong),
                     lambda: comm.igatherv(a, np.zeros(8), [4, 4], None, wrong).wait()],
            "op": [lambda: comm.allreduce(a, b, 3 if comm.rank else "sum")],
            "color": [lambda: comm.Split(wrong)],
            "counts": [lambda: comm.reduce_scatter(a, None, [2, 2 if comm.rank else 2.5])],
            "destinations": [lambda: comm.neighbor_alltoall(a, b, destinations=[wrong])],
        }
        for name, several in calls.items():
            for call in several:
                try:
                    call()
                except quadriga.InvalidArgument as error:
                    assert f"{name} is" in str(error), (name, error)
                else:
                    raise AssertionError(f"{name}: nothing was wrong")
        assert comm.allreduce(a)[0] == 2
        """,
    )


def test_ranks_and_tags_are_whole_numbers():
    a = np.zeros(3)
    with message.world(deadline=5) as comm:
        one = np.int8(0)
        comm.sendrecv(a, one, a.copy(), one, np.uint16(3), np.int64(3))
        for name, call in {
            "dest": lambda wrong: comm.send(a, wrong),
            "source": lambda wrong: comm.irecv(a, wrong),
            "tag": lambda wrong: comm.isend(a, 0, wrong),
            "recvtag": lambda wrong: comm.sendrecv(a, 0, a, 0, 1, wrong),
            "rank": lambda wrong: comm.plan([(a, wrong)]),
        }.items():
            for wrong in ("0", 0.0, None, [0]):
                with pytest.raises(InvalidType, match=f"{name} is .*; expected a whole number"):
                    call(wrong)
            with pytest.raises(InvalidArgument, match=f"{name} {2**40}: expected a whole number"):
                call(2**40)
        for call in (comm.send, comm.irecv):
            with pytest.raises(InvalidType, match="NoneType is no array"):
                call(None, 0)


def test_fewer_records_than_the_receive_has_room_for(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        kind = np.dtype("f8,i2,c8")
        for count in (1, 7, 100000):
            records = np.zeros(count, kind)
            records["f0"], records["f1"] = np.arange(count), 3
            if comm.rank == 0:
                comm.send(records, 1, 4)
                continue
            into = np.zeros((count + 3) * 2, kind)[::2]
            assert comm.recv(into, 0, 4).nbytes == 18 * count
            assert (into[:count] == records).all() and not into[count:]["f1"].any()
        # Other records, and a part of one.
        for sent in ("i2,f8,c8", "f8,i2"):
            if comm.rank == 0:
                comm.send(np.zeros(2, sent), 1, 4)
                continue
            try:
                comm.recv(np.zeros(9, kind), 0, 4)
            except quadriga.InvalidArgument as error:
                assert "of several types" in str(error)
            else:
                raise AssertionError(sent)
        """,
    )


def test_wrong_elements_and_sizes_raise(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        for count in (10, 100000):
            if comm.rank == 0:
                comm.send(np.zeros(count), 1, 1)
            else:
                try:
                    comm.recv(np.zeros(count - 1), 0, 1)
                except quadriga.InvalidArgument as error:
                    assert str(8 * count) in str(error) and str(8 * count - 8) in str(error)
                else:
                    raise AssertionError("too long")
        read_only = np.zeros(3)
        read_only.flags.writeable = False
        scalar = np.float64(0)
        for array, kind in ((read_only, ValueError), ([1, 2], TypeError), (scalar, TypeError)):
            try:
                comm.recv(array, 0)
            except kind as error:
                assert isinstance(error, quadriga.InvalidArgument)
            else:
                raise AssertionError("accepted")
        """,
    )


def test_threads_of_a_rank_call_at_once(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        def exchange(tag):
            for i in range(100):
                mine, theirs = np.full(1000 * (i % 3), float(i)), np.zeros(1000 * (i % 3))
                comm.sendrecv(mine, 1 - comm.rank, theirs, 1 - comm.rank, tag, tag)
                assert (theirs == i).all()
        threads = [threading.Thread(target=exchange, args=(tag,)) for tag in range(3)]
        for each in threads: each.start()
        for each in threads: each.join()
        """,
    )


def test_alone():
    with message.world() as comm:
        assert (comm.rank, comm.size) == (0, 1)
        a, b = np.arange(4.0), np.zeros(4)
        assert comm.allreduce(a).tolist() == a.tolist()
        comm.send(a, 0, 3)
        assert comm.recv(b).source == 0
        assert b.tolist() == a.tolist()
        with pytest.raises(Deadline, match="rank 0: recv from any rank, any tag"):
            comm.recv(b, deadline=0.1)
        with pytest.raises(InvalidArgument, match="destination is 1; expected 0 to 0"):
            comm.send(a, 1)
        with pytest.raises(InvalidType):
            comm.send({}, 0)
    with pytest.raises(RuntimeError, match="closed"):
        comm.send(a, 0)


def one_of(rank, address, token, results):
    with message.join(address, rank, 3, token, deadline=30) as comm:
        results.put((rank, comm.allreduce(np.array([rank]))[0]))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_join_under_multiprocessing(tmp_path, method):
    context = multiprocessing.get_context(method)
    results, token = context.Queue(), message.new_token()
    arguments = (f"file:{tmp_path / 'here'}", token, results)
    ranks = [context.Process(target=one_of, args=(rank, *arguments)) for rank in range(3)]
    for each in ranks:
        each.start()
    assert sorted(results.get(timeout=240) for _ in ranks) == [(0, 3), (1, 3), (2, 3)]
    for each in ranks:
        each.join(240)
        assert each.exitcode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "rank", "token"),
    [
        ("tcp:192.168.0.1:4000", 0, "0" * 32),
        ("somewhere", 0, "0" * 32),
        ("file:here", 2, "0" * 32),
        ("file:here", 0, "0"),
    ],
)
def test_what_join_refuses(address, rank, token):
    with pytest.raises(InvalidArgument):
        message.join(address, rank, 2, token, patience=0.1)


def test_join_names_who_did_not_come(tmp_path):
    with pytest.raises(Deadline, match="ranks 1, 2 of 3 didn't come"):
        message.join(f"file:{tmp_path / 'here'}", 0, 3, message.new_token(), patience=0.1)
    assert list(tmp_path.iterdir()) == []


def test_a_deadline_set_later_holds_for_calls_without_their_own():
    with message.world() as comm:
        comm.deadline = 0.05
        with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
            comm.recv(np.zeros(1), 0)
        with pytest.raises(TimeoutError, match=r"within 0\.01 s"):
            comm.recv(np.zeros(1), 0, deadline=0.01)


def test_a_deadline_that_has_passed_is_no_wait_without_end():
    with message.world(deadline=-1) as comm:
        with pytest.raises(Deadline, match="within 0 s"):
            comm.recv(np.zeros(1), 0)
        waiting = comm.irecv(np.zeros(1), 0)
        for call in (waiting.wait, lambda: waiting.wait(deadline=-3)):
            with pytest.raises(Deadline):
                call()
        with pytest.raises(Deadline):
            message.waitall([waiting], deadline=float("-inf"))
        with pytest.raises(InvalidArgument, match="isn't a number"):
            waiting.wait(deadline=float("nan"))
        assert waiting.cancel()
        plan = comm.plan(receives=[(np.zeros(1), 0)])
        plan.start()
        with pytest.raises(Deadline):
            plan.wait(deadline=-1)
        assert plan.cancel()


def test_bytes_are_sent_but_not_received_into():
    with message.world(deadline=30) as comm:
        sent, got = b"abc", bytearray(3)
        comm.isend(sent, 0)
        for call in (comm.recv, comm.irecv):
            with pytest.raises(InvalidType, match="bytes can't be written"):
                call(b"xyz", 0)
        comm.recv(got, 0)
        assert got == sent


def test_plans(tmp_path):
    run_ranks(
        tmp_path,
        3,
        """
        right, left = (comm.rank + 1) % 3, (comm.rank - 1) % 3
        for rows in (1, 3000):
            a = np.zeros((rows, 4))
            column = Layout.vector(rows, 1, 4, "f8")
            plan = comm.plan(
                sends=[(a[:, 2], right, 1), (a, left, 2, column)],
                receives=[(a[:, 3], left, 1), (a[:, 1], right)],
            )
            for round in range(30):
                a[:, 2] = comm.rank + 10 * round
                a[:, 0] = -a[:, 2]
                plan.start()
                plan.wait()
                assert (a[:, 3] == left + 10 * round).all(), (rows, round)
                assert (a[:, 1] == -right - 10 * round).all(), (rows, round)
            assert [(s.source, s.tag, s.nbytes) for s in plan.received] == [
                (left, 1, 8 * rows), (right, 2, 8 * rows)
            ]
            assert plan.test() and not plan.cancel()
            try:
                a.resize(rows + 7, 4)
            except ValueError:
                pass
            else:
                raise AssertionError("a plan's array was resized")
        waiting = comm.plan(receives=[(np.zeros(3), left, 9)])
        waiting.start()
        comm.barrier()
        for call, kind in [
            (waiting.start, quadriga.InvalidArgument),
            (lambda: waiting.wait(deadline=0.01), quadriga.Deadline),
            (lambda: comm.plan([(np.zeros(3), 3)]), quadriga.InvalidArgument),
            (lambda: comm.plan([np.zeros(3)]), quadriga.InvalidArgument),
            (lambda: comm.plan([(object(), 0)]), quadriga.errors.InvalidType),
        ]:
            try:
                call()
            except kind:
                continue
            raise AssertionError("nothing was wrong")
        del waiting  # It goes on.
        comm.barrier()
        comm.send(np.ones(3), right, 9)
        comm.barrier()
        """,
    )


class Tensor:
    """What PyTorch's tensors are to NumPy."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        if self.device[0] != 1:
            raise BufferError("it is on a GPU")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_tensors_on_the_host_are_sent_and_received_in_place():
    with message.world(deadline=30) as comm:
        mine, theirs = np.arange(12.0).reshape(3, 4), np.zeros((4, 3))
        comm.isend(Tensor(mine[:, ::2]), 0)
        comm.recv(Tensor(theirs.T[:, ::2]), 0)
        assert (theirs.T[:, ::2] == mine[:, ::2]).all() and not theirs.T[:, 1::2].any()
        comm.allreduce(Tensor(mine), Tensor(mine))
        for call in (comm.isend, comm.irecv):
            with pytest.raises(InvalidType, match="Tensor is no array on the host: it is on"):
                call(Tensor(mine, (2, 0)), 0)


def test_closing_a_part_leaves_the_world_open():
    with message.world(deadline=30) as comm:
        part = comm.Split(0)
        part.close()
        assert part.allreduce(np.ones(1)) == comm.allreduce(np.ones(1)) == 1
    with pytest.raises(RuntimeError, match="closed"):
        part.barrier()
