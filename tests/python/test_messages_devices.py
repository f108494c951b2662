# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages_devices.py: arrays in memory of emulated devices as messages.
import numpy as np
import pytest
from ranks_of_tests import launched, run_ranks

import quadriga
from quadriga import message
from quadriga.message import Layout

GPUS = "emulated:2,memory=16MiB"


HEAD = f"""
    gpus = message.Devices("{GPUS}")
"""


def test_between_processes(tmp_path):
    printed = run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    for count in (1, 100, 5000, 300_000):
        values = np.arange(count, dtype=np.float64)
        if comm.rank == 0:
            a = gpus.array(values)
            comm.send(a, 1, tag=3)  # to a device
            comm.send(a, 1, tag=4)  # to the host
            comm.send(values, 1, tag=5)  # from the host
        else:
            b, c, host = gpus.empty(count, device=1), gpus.empty(count), np.empty(count)
            assert comm.recv(b, 0, 3).nbytes == values.nbytes
            assert (b.get() == values).all()
            comm.recv(host, 0, 4)
            assert (host == values).all()
            comm.recv(c, 0, 5)
            assert (c.get() == values).all()
    comm.barrier()
    print(comm.paths()[1 - comm.rank]["in" if comm.rank == 1 else "out"])
    """,
    )
    assert printed.split() == ["mapped", "mapped"]


def test_layouts(tmp_path):
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    a = np.arange(300.0 * 200).reshape(300, 200)
    if comm.rank == 0:
        comm.send(gpus.array(a), 1)
    else:
        b = gpus.empty((200, 300))
        comm.recv(b, 0, layout=Layout.of(np.empty((200, 300)).T))
        assert (b.get() == a.T).all()
    comm.barrier()
    """,
    )


def test_layouts_must_fit():
    gpus = message.Devices(GPUS)
    with message.world() as comm:
        a = gpus.array(np.ones(4))
        with pytest.raises(quadriga.InvalidArgument, match="reaches bytes"):
            comm.send(a, 0, layout=Layout.contiguous(5, np.float64))


def test_views_of_a_device():
    gpus = message.Devices(GPUS)
    values = np.arange(60.0).reshape(3, 4, 5)
    a = gpus.array(values)
    assert (a[1:, ::-1, 2].get() == values[1:, ::-1, 2]).all()
    assert (a.T[0].get() == values.T[0]).all()
    a[..., 0].set(np.zeros((3, 4)))
    values[..., 0] = 0
    assert (a.get() == values).all()
    view = a[2]
    del a  # the view keeps the memory
    assert (view.get() == values[2]).all() and len(view) == 4 and view.ndim == 2
    with pytest.raises(quadriga.InvalidArgument, match="slices"):
        view[[0, 1]]


# Every collective, of arrays that are drawn to be on the host or a device, rows or a view, beside
# the same by NumPy on what all ranks have.
RANDOM = """
gpus = message.Devices("emulated:2,memory=32MiB")
own = np.random.default_rng(comm.rank + 100)

def placed(values):
    # The same elements on the host, on a device, or as every second row of one.
    where = own.integers(4)
    if where == 0:
        return values.copy()
    if where == 1:
        wide = gpus.empty((2 * len(values), *values.shape[1:]), values.dtype, int(own.integers(2)))
        wide[::2].set(values)
        return wide[::2]
    return gpus.array(values, device=int(own.integers(2)))

def content(array):
    return array if isinstance(array, np.ndarray) else array.get()

def check(array, expected, what):
    assert np.array_equal(content(array), expected), what

for seed in range(12):
    rng = np.random.default_rng(seed)  # the same on all ranks
    n = comm.size
    rows, width = n * int(rng.integers(1, 30)), int(rng.integers(1, 9))
    kind = [np.float64, np.int32, np.complex64][seed % 3]
    every = [rng.integers(-50, 50, (rows, width)).astype(kind) for _ in range(n)]
    mine, root = every[comm.rank], int(rng.integers(n))
    mean = int(rng.integers(0, rows // n + 1))
    counts = [mean] * (n - 1) + [rows - mean * (n - 1)]
    begins = np.cumsum([0, *counts])
    slices = [slice(b, b + c) for b, c in zip(begins, counts)]
    at = comm.rank * rows // n, (comm.rank + 1) * rows // n
    total = sum(every)
    block = slice(*at)

    check(comm.bcast(placed(mine), root), every[root], "bcast")
    check(comm.allreduce(placed(mine)), total, "allreduce")
    check(comm.allreduce(placed(mine), placed(mine)), total, "allreduce into")
    x = placed(mine)
    check(comm.allreduce(x, x, reproducible=True), total, "allreduce in place")
    got = comm.reduce(placed(mine), op="prod", root=root)
    if comm.rank == root:
        product = every[0].copy()
        for each in every[1:]:
            product *= each
        check(got, product, "reduce")
    check(comm.reduce_scatter(placed(mine)), total[block], "reduce_scatter")
    check(comm.reduce_scatter(placed(mine), counts=counts), total[slices[comm.rank]], "counts")
    check(comm.allgather(placed(mine)), np.stack(every), "allgather")
    got = comm.gather(placed(mine), root=root)
    if comm.rank == root:
        check(got, np.stack(every), "gather")
    check(comm.scatter(placed(mine), placed(mine[: rows // n]), root), every[root][block],
          "scatter")
    check(comm.alltoall(placed(mine)), np.concatenate([e[block] for e in every]), "alltoall")
    part = mine[slices[comm.rank]]
    whole = np.concatenate([e[s] for e, s in zip(every, slices)])
    check(comm.allgatherv(placed(part), placed(mine), counts), whole, "allgatherv")
    got = comm.gatherv(placed(part), placed(mine), counts, root=root)
    if comm.rank == root:
        check(got, whole, "gatherv")
    check(comm.scatterv(placed(mine), placed(part), counts, root=root),
          every[root][slices[comm.rank]], "scatterv")
    rows_here = counts[comm.rank]
    into = placed(np.tile(mine[:1], (rows_here * n, 1)))
    got = comm.alltoallv(placed(mine), counts, into, [rows_here] * n)
    check(got, np.concatenate([e[slices[comm.rank]] for e in every]), "alltoallv")
    right, left = (comm.rank + 1) % n, (comm.rank - 1) % n
    two = placed(mine[: rows // n * 2]) if n > 1 else placed(np.tile(mine, (2, 1)))
    if n > 1:
        got = comm.neighbor_alltoall(two, destinations=[right, left], sources=[left, right])
        half = rows // n
        blocks = every[left][:half], every[right][half : 2 * half]
        check(got, np.concatenate(blocks), "neighbours")
    columns = [placed(np.asfortranarray(mine).T.copy()) for _ in range(n)]
    into = [placed(np.zeros_like(mine)) for _ in range(n)]
    comm.alltoallw(columns, into)
    check(into[left], np.ascontiguousarray(every[left].T).reshape(mine.shape), "alltoallw")
print("same")
"""


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_collectives_give_what_numpy_does(tmp_path, ranks):
    assert run_ranks(tmp_path, ranks, RANDOM).split() == ["same"] * ranks


def test_plans(tmp_path):
    run_ranks(
        tmp_path,
        3,
        HEAD
        + """
    grid = gpus.array(np.zeros((50, 60)) + comm.rank, device=comm.rank % 2)
    right, left = (comm.rank + 1) % 3, (comm.rank - 1) % 3
    plan = comm.plan(sends=[(grid[:, -2], right)], receives=[(grid[:, 0], left)])
    for step in range(4):
        grid[:, 1:].set(np.full((50, 59), 10.0 * step + comm.rank))
        plan.start()
        plan.wait()
        assert (grid[:, 0].get() == 10.0 * step + left).all()
        comm.barrier()
    """,
    )


def test_a_rank_that_dies_in_a_collective_is_lost(tmp_path):
    ended = launched(
        tmp_path,
        3,
        """
    gpus = message.Devices("emulated:2,memory=128MiB,peer=20MB/s")
    a = gpus.array(np.ones(4 << 20), device=comm.rank % 2)
    comm.barrier()
    if comm.rank == 1:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    try:
        while True:
            comm.allreduce(a, a)
    except (quadriga.PeerLost, quadriga.Cancelled) as error:
        print(type(error).__name__)
    """,
        keep_going=True,
    )
    lost = ended.stdout.split()
    assert len(lost) == 2 and "PeerLost" in lost, ended.stderr


def test_a_full_device_says_so():
    gpus = message.Devices("emulated:1,memory=1MiB")
    with pytest.raises(quadriga.TooLarge, match="memory left"):
        gpus.empty(1 << 20)


def test_devices_are_emulated():
    with pytest.raises(quadriga.InvalidArgument):
        message.Devices("cpu")
