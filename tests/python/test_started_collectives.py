# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_started_collectives.py: collectives that are started between processes.
from ranks_of_tests import run_ranks


def test_results_while_others_are_called(tmp_path):
    run_ranks(
        tmp_path,
        3,
        """
        n, me = comm.size, comm.rank
        for count in 3, 40_000:
            own = np.full(count, me + 1.0)
            told = np.full((count, 2), float(me))[:, 0]  # strided
            total, most = np.zeros(count), np.zeros(count)
            all, whole = np.zeros((n, count)), np.zeros((n, count)) if me == 1 else None
            part, turned = np.zeros(count), np.zeros((n, count))
            given = np.repeat(np.arange(n), count).reshape(n, count).astype(float)
            requests = [
                comm.ibarrier(),
                comm.ibcast(told, root=2),
                comm.iallreduce(own, total),
                comm.iallreduce(most, most, op="max", reproducible=True),
                comm.ireduce(own, most if me == 0 else None, op="max"),
                comm.iallgather(own, all),
                comm.igather(own, whole, root=1),
                comm.iscatter(given if me == 2 else None, part, root=2),
                comm.ialltoall(given, turned),
            ]
            assert comm.allreduce(np.array([me]))[0] == 3  # Meets none of them.
            statuses = message.waitall(requests)
            assert len(statuses) == len(requests) and requests[0].test()
            assert not requests[0].cancel()
            assert (told == 2).all() and (total == 6).all() and (part == me).all()
            assert me != 0 or (most == 3).all()
            assert (all == np.arange(1.0, 4)[:, None]).all() and (turned == me).all()
            assert me != 1 or (whole == all).all()
        comm.barrier()
        """,
    )


def test_parts_of_any_sizes(tmp_path):
    run_ranks(
        tmp_path,
        3,
        """
        n, me = comm.size, comm.rank
        counts = [0, 1, 2]                       # rows of each rank
        rows = np.full((me, 300), float(me))
        all = np.zeros((4, 300))[::-1]           # strided
        one = np.zeros((3, 300)) if me == 1 else None
        given, back = np.repeat([1.0, 2, 2], 300).reshape(3, 300), np.zeros((me, 300))
        out, got = np.full((3 + 3 * me, 2), float(me)), np.zeros((3 + 3 * me, 2))
        sizes = [me + other for other in range(n)]
        corner = [np.full((2, 2), me + 0.5) if other != me else None for other in range(n)]
        turned = [np.zeros((2, 2)).T if other != me else None for other in range(n)]
        ring = np.zeros(4)
        part, sums = np.zeros((2, 2)), np.arange(12.0).reshape(6, 2)
        message.waitall([
            comm.iallgatherv(rows, all, counts, displs=[0, 3, 0]),
            comm.igatherv(rows, one, counts, root=1),
            comm.iscatterv(given if me == 1 else None, back, counts, root=1),
            comm.ialltoallv(out[: 3 * me + 3], sizes, got, sizes),
            comm.ialltoallw(corner, turned),
            comm.ineighbor_alltoall(np.array([0, 0, 1, 1.0]) + 10 * me, ring,
                                    destinations=[(me + 1) % n, (me - 1) % n],
                                    sources=[(me - 1) % n, (me + 1) % n]),
            comm.ireduce_scatter(sums, part),
        ])
        assert all[:2].tolist() == [[2.0] * 300] * 2 and (all[3] == 1).all() and not all[2].any()
        assert me != 1 or one[:, 0].tolist() == [1, 2, 2]
        assert (back == me).all()
        assert got[:, 0].tolist() == [float(other) for other in range(n) for _ in range(me + other)]
        for other in range(n):
            assert other == me or (turned[other] == other + 0.5).all()
        assert ring.tolist() == [10 * ((me - 1) % n)] * 2 + [10 * ((me + 1) % n) + 1] * 2
        assert (part == 3 * sums[2 * me : 2 * me + 2]).all()
        """,
    )


def test_what_is_wrong_on_one_rank_raises_on_all(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        x = np.zeros(4)
        for wrong in (
            lambda: comm.ibcast(x, root=comm.rank),
            lambda: comm.iallreduce(x, x, op="sum" if comm.rank else "max"),
            lambda: comm.iallreduce(x, x, op="sum" if comm.rank else "no such operation"),
            lambda: comm.iallreduce(x[: 3 + comm.rank], np.zeros(3 + comm.rank)),
            lambda: comm.ibcast(x, root=0 if comm.rank else "a text"),
            lambda: comm.ibcast(x if comm.rank else object()),
            lambda: comm.ibarrier() if comm.rank else comm.ibcast(x),
            lambda: comm.iallgatherv(x[:2], x, [2, 2] if comm.rank else [2, 3]),
            lambda: comm.ialltoallv(x, [2, 2], x.copy(), [2, 2] if comm.rank else [2, 1]),
            lambda: comm.igatherv(x, None if comm.rank else [x], root=0),
            lambda: comm.ireduce_scatter(x, x[:2], [2, 2] if comm.rank else [2.5, 2]),
        ):
            try:
                wrong().wait()
                raise AssertionError("nothing was raised")
            except (quadriga.InvalidArgument, quadriga.InvalidType):
                pass
        comm.ibarrier().wait()
        """,
    )


def test_deadlines_and_dropped_requests(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        x = np.full(3, 1.0 + comm.rank)
        if comm.rank == 0:
            request = comm.iallreduce(x, x)
            try:
                request.wait(deadline=0.05)
                raise AssertionError("nothing was raised")
            except quadriga.Deadline as error:
                assert "allreduce" in str(error) and "rank 1" in str(error)
            assert not request.test()
            comm.send(x[:1], 1)
            request.wait()
        else:
            comm.recv(np.zeros(1), 0)
            comm.iallreduce(x, x)  # It is dropped, and goes on.
        comm.barrier()
        while (x != 3).any():
            time.sleep(0.001)
        """,
    )


def test_lost_ranks(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
        x = np.zeros(1)
        if comm.rank == 1:
            comm.recv(x, 0)
            os._exit(0)
        request = comm.iallreduce(x, x)
        comm.send(x, 1)
        try:
            request.wait()
            raise AssertionError("nothing was raised")
        except quadriga.PeerLost as error:
            assert error.rank == 1
        """,
    )
