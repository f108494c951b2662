# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_collectives.py: collectives of any sizes between processes, beside NumPy.
import pytest
from ranks_of_tests import run_ranks

# All ranks draw the same, so each knows what the others have.
DRAW = """
random = np.random.default_rng({seed})
n, me = comm.size, comm.rank
def drawn(rows, kind="f8", width=3):
    return random.integers(-1000, 1000, (rows, width)).astype(kind)
def spread(total):
    cuts = np.sort(random.integers(0, total + 1, n - 1))
    return np.diff([0, *cuts, total]).tolist()
"""


def run_drawn(folder, ranks, seed, body):
    run_ranks(folder, ranks, "".join([DRAW.format(seed=seed), body]))


REDUCTIONS = """
for case in range(12):
    rows = int(random.choice([0, 1, 50, 3000]))
    kind = random.choice(["f8", "f4", "i8", "c16"])
    algorithm = random.choice(["", "linear", "chain", "binary", "binomial", "split_binary"])
    comm.force(algorithm or None, int(random.choice([0, 64, 5000])))
    every = [drawn(rows, kind) for _ in range(n)]
    views = [np.ascontiguousarray(a.T).T for a in every] if case % 3 == 0 else every
    total = sum(every)
    root = int(random.integers(n))
    keep = bool(random.integers(2))
    assert np.array_equal(comm.allreduce(views[me], reproducible=keep), total)
    got = comm.reduce(views[me], root=root, reproducible=keep)
    assert me != root or np.array_equal(got, total)
    counts = spread(rows)
    begin = sum(counts[:me])
    part = comm.reduce_scatter(every[me], counts=counts, reproducible=keep)
    assert np.array_equal(part, total[begin : begin + counts[me]])
    whole = comm.allgatherv(part, None, counts)
    assert np.array_equal(whole, total)
    lists = [np.zeros((count, 6), kind)[:, ::2] for count in counts]
    comm.allgatherv(part, lists)
    assert np.array_equal(np.concatenate(lists), total)
    told = total.copy() if me == root else np.zeros_like(total)
    assert np.array_equal(comm.bcast(told, root), total)
even = drawn(4 * n)
assert np.array_equal(comm.reduce_scatter(even), n * even[4 * me : 4 * me + 4])
"""

PARTS = """
for case in range(10):
    total = int(random.choice([0, n, 700, 20000]))
    root = int(random.integers(n))
    data, counts = drawn(total), spread(total)
    begins = np.cumsum([0, *counts])
    own = data[begins[me] : begins[me + 1]]
    got = comm.gatherv(own, None, counts if me == root else None, root=root)
    assert (got is None) == (me != root) and (me != root or np.array_equal(got, data))
    apart = np.full((total + 2 * n, 3), 7.0)
    displs = [int(begins[i]) + 2 * i for i in range(n)]
    comm.gatherv(own, apart, counts, displs, root)
    if me == root:
        assert all(np.array_equal(apart[d : d + c], data[b : b + c])
                   for d, c, b in zip(displs, counts, begins))
        assert all((apart[d + c : d + c + 2] == 7).all() for d, c in zip(displs, counts))
    back = np.zeros((counts[me], 6))[:, ::2]
    comm.scatterv(apart if me == root else None, back, counts, displs, root)
    assert np.array_equal(back, own)
    table = random.integers(0, 90, (n, n)) * random.integers(0, 2, (n, n))
    numbers = [[drawn(table[i, j]) for j in range(n)] for i in range(n)]
    got = np.zeros((int(table[:, me].sum()), 3))
    comm.alltoallv(np.concatenate(numbers[me]), table[me], got, table[:, me])
    assert np.array_equal(got, np.concatenate([numbers[i][me] for i in range(n)]))
    kinds = ["f8", "i4", "c8", "f4", "u2"]
    sent = [numbers[me][j].astype(kinds[(me + j) % 5]) for j in range(n)]
    wide = [np.zeros((table[i, me], 6), kinds[(i + me) % 5])[:, ::2] for i in range(n)]
    comm.alltoallw(sent, wide)
    assert all(np.array_equal(wide[i], numbers[i][me].astype(wide[i].dtype)) for i in range(n))
"""


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_reductions_at_random(tmp_path, ranks):
    run_drawn(tmp_path, ranks, 11 + ranks, REDUCTIONS)


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_parts_of_any_sizes_at_random(tmp_path, ranks):
    run_drawn(tmp_path, ranks, 23 + ranks, PARTS)


def test_neighbours_exchange_blocks(tmp_path):
    run_ranks(
        tmp_path,
        4,
        """
        n, me = comm.size, comm.rank
        left, right = (me - 1) % n, (me + 1) % n
        for width in (1, 5000):
            blocks = np.stack([np.full(width, 10.0 * me), np.full(width, 10.0 * me + 1)])
            got = comm.neighbor_alltoall(blocks, destinations=[left, right], sources=[right, left])
            assert (got[0] == 10 * right).all() and (got[1] == 10 * left + 1).all()
        # A star: rank 0 with all others, which have one neighbour only.
        own = np.arange(3.0) + me if me == 0 else np.array([100.0 + me])
        around = [1, 2, 3] if me == 0 else [0]
        got = comm.neighbor_alltoall(own, destinations=around)
        assert got.tolist() == ([101, 102, 103] if me == 0 else [me - 1])
        # Twice the same neighbour, and oneself.
        got = comm.neighbor_alltoall(np.array([1.0, 2.0, 3.0]) + 10 * me,
                                     destinations=[me ^ 1, me ^ 1, me])
        assert got.tolist() == [1 + 10 * (me ^ 1), 2 + 10 * (me ^ 1), 3 + 10 * me]
        """,
    )


def test_sides_that_disagree_raise_on_all_ranks(tmp_path):
    run_ranks(
        tmp_path,
        3,
        """
        odd = comm.rank == 1
        a = np.ones((6, 2))
        calls = [
            lambda: comm.gatherv(a, None, [6, 5, 6], root=0),
            lambda: comm.gatherv(a, None, [6, 6], root=0),
            lambda: comm.scatterv(a, np.zeros((3 if odd else 2, 2)), [2, 2, 2]),
            lambda: comm.alltoallv(a, [2, 2, 2], np.zeros((6, 2)), [2, 2, 3] if odd else [2, 2, 2]),
            lambda: comm.alltoallw([a] * 3, [np.zeros((6, 2), "f4" if odd else "f8")] * 3),
            lambda: comm.allgatherv(a, None, [6, 6, 7] if odd else [6, 6, 6]),
            lambda: comm.reduce_scatter(a, counts=[1, 2, 3] if odd else [3, 2, 1]),
            lambda: comm.neighbor_alltoall(a, destinations=[0, 0] if odd else [1, 1]),
            lambda: comm.neighbor_alltoall(a, destinations=[9] if odd else []),
            lambda: comm.allreduce(a, reproducible=odd),
        ]
        for number, call in enumerate(calls):
            try:
                call()
            except quadriga.InvalidArgument as error:
                assert str(error), number
            else:
                raise AssertionError(number)
            comm.barrier()
        comm.force("chain" if odd else "linear")
        try:
            comm.bcast(a)
        except quadriga.InvalidArgument as error:
            assert "rank 1: bcast of 12 float64, root 0, chain segment 0" in str(error), error
        else:
            raise AssertionError("nothing was wrong")
        comm.force()
        assert comm.allreduce(np.ones(1))[0] == 3
        """,
    )


def test_reproducible_sums_depend_on_the_ranks_numbers_only(tmp_path):
    run_ranks(
        tmp_path,
        5,
        """
        random = np.random.default_rng(5)
        every = [random.standard_normal(40000) * 10.0 ** random.integers(-9, 9) for _ in range(5)]
        mine = every[comm.rank]
        # As a binomial tree adds, whatever the size: 0 with 1, 2 with 3, then both, then 4.
        wanted = ((every[0] + every[1]) + (every[2] + every[3])) + every[4]
        for size in (1, 100, 40000):
            for algorithm in (None, "chain", "linear"):
                comm.force(algorithm, 0 if algorithm is None else 4096)
                got = comm.allreduce(mine[:size], reproducible=True)
                assert got.tobytes() == wanted[:size].tobytes(), (size, algorithm)
        """,
    )


def test_a_rank_that_dies_within_an_exchange_is_named(tmp_path):
    run_ranks(
        tmp_path,
        3,
        """
        begin = time.monotonic()
        if comm.rank == 2:
            try:
                comm.alltoallv(np.zeros(3), [1, 1, 1], np.zeros(3), [1, 1, 1], deadline=0.3)
            except quadriga.Deadline:
                open("too-late", "w").close()
        else:
            while not os.path.exists("too-late"):
                time.sleep(0.02)
            try:
                comm.alltoallv(np.zeros(3), [1, 1, 1], np.zeros(3), [1, 1, 1])
            except quadriga.Error as error:
                assert "alltoallv" in str(error), error
            else:
                raise AssertionError("nothing was wrong")
        """,
    )


WITHOUT_AN_ARRAY = """
own = None if me == 1 else np.ones(n)
calls = {
    "allreduce": lambda: comm.allreduce(own),
    "reduce": lambda: comm.reduce(own),
    "reduce_scatter": lambda: comm.reduce_scatter(own),
    "gather": lambda: comm.gather(own),
    "allgather": lambda: comm.allgather(own),
    "alltoall": lambda: comm.alltoall(own),
    "bcast": lambda: comm.bcast(own),
    "scatter": lambda: comm.scatter(np.ones(n), own),
    "allreduce in op": lambda: comm.allreduce(np.ones(4), op=3 if me == 1 else "sum"),
    "allreduce in reproducible": lambda: comm.allreduce(
        np.ones(4), reproducible=None if me == 1 else True
    ),
    "gather in root": lambda: comm.gather(np.ones(4), root=np.ones(3) if me == 1 else 0),
    "gather in an array": lambda: comm.gather(
        np.ones(4), root=np.array(0.0) if me == 1 else 0
    ),
    "barrier": lambda: comm.barrier(deadline="x" if me == 1 else 5),
    "alltoallv in deadline": lambda: comm.alltoallv(
        np.ones(n), [1] * n, np.ones(n), [1] * n, deadline=[] if me == 1 else 5
    ),
    "gatherv in counts": lambda: comm.gatherv(np.ones(1), None, 3, root=1),
    "neighbor_alltoall": lambda: comm.neighbor_alltoall(
        np.ones(n), destinations=3 if me == 1 else [0, 1, 2]
    ),
    "iallreduce": lambda: comm.iallreduce(own, np.ones(n)).wait(),
    "ibcast": lambda: comm.ibcast(own).wait(),
}
for name, call in calls.items():
    with pytest.raises((ValueError, TypeError), match="(?s) is .*; expected ") as raised:
        call()
    assert me == 1 or "rank 1: " in str(raised.value), (name, raised.value)
    with pytest.raises((ValueError, TypeError), match="deadline is 'x'; expected seconds"):
        comm.barrier(deadline="x")
assert comm.allreduce(np.ones(1))[0] == n
"""


def test_a_rank_without_an_array_tells_the_others(tmp_path):
    run_drawn(tmp_path, 3, 5, "import pytest" + WITHOUT_AN_ARRAY)
