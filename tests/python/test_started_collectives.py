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
