# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_mpi_preload.py: MPI programs with the preload library beside the same without.
import sys
import time
from pathlib import Path
from random import Random

import pytest
from mpi_of_tests import (
    EACH_MPI,
    HEAD,
    build,
    compiled,
    counted,
    is_here,
    mpiexec,
    preloaded,
    run,
    run_preloaded,
)
from paces_of_tests import at_some_pace

PROGRAMS = Path(__file__).resolve().parents[1] / "mpi"
EXAMPLES = PROGRAMS.parents[1] / "examples" / "mpi"


def built(folder, mpi, source):
    program = folder / source.stem
    build(mpi, source, program, "-O1", "-pthread")
    return program


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_random_messages_arrive_as_without(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "random_exchange.c")
    for seed, ranks, small in ((1, 2, "64"), (2, 3, "64"), (3, 6, "500"), (4, 4, "64")):
        words = [str(seed), "8"]
        plain = run([*mpiexec(mpi, ranks), program, *words])
        assert plain.returncode == 0, plain.stderr
        for mode in ("--host-buffers", "--emulated"):
            options = preloaded(mode, "--counters", "--small", small)
            ours = run([*mpiexec(mpi, ranks), *options, program, *words])
            assert ours.returncode == 0, ours.stderr
            assert counted(ours.stderr, "sent") > 30
            assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines()), seed


@pytest.mark.parametrize("mpi", EACH_MPI)
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_mpi_promises(mpi, ranks, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "semantics.c")
    assert run([*mpiexec(mpi, ranks), program]).returncode == 0
    said = run_preloaded(program, mpi, ranks, "--host-buffers", "--small", "64")
    assert counted(said, "sent") >= 12 and counted(said, "looked at") > 0


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_synchronous_send_ends_once_its_receive_has_begun(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "synchronous.c")
    assert run([*mpiexec(mpi, 2), program]).returncode == 0
    said = run_preloaded(program, mpi, 2, "--host-buffers", "--small", "64")
    assert counted(said, "sent") == 60 and counted(said, "looked at") == 54
    # Nothing is a device's; what is as long as an envelope goes by one all the same.
    assert counted(run_preloaded(program, mpi, 2, "--emulated"), "sent") == 20


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_large_messages_wait_for_their_receives_as_without(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "late_receives.c")

    def copied(*arguments):
        said = run_preloaded(program, mpi, 2, "--host-buffers", arguments=arguments)
        assert counted(said, "sent") == 5
        return counted(said, "aside")

    def check(pace):
        # A receiver that comes late is waited for; nothing is copied for it.
        assert copied(str(pace << 20), str(pace * 0.02)) == 0

    at_some_pace(check, paces=(1, 8, 64))
    # One that may not look before this rank goes on is not.
    assert copied(str(1 << 20), "0", "posted") == 5


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_what_was_probed_goes_with_its_communicator(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "freed_communicator.c")
    said = run_preloaded(program, mpi, 2, "--host-buffers", "--small", "64")
    assert counted(said, "looked at") == 5


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_rank_without_the_library_gets_ordinary_messages(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "semantics.c")
    with_it = preloaded("--host-buffers", "--counters", "--small", "64")
    command = [*mpiexec(mpi, 1), *with_it, program, ":", "-n", "1", program]
    ended = run([*command, ":", "-n", "1", *with_it, program])
    assert ended.returncode == 0, ended.stderr
    assert "2 of 3 ranks; sent 0 messages" in ended.stderr


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_functions_can_be_left_to_mpi(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "semantics.c")
    names = "Send,Isend,Ssend,MPI_Sendrecv_replace,Pack,Unpack"
    said = run_preloaded(program, mpi, 2, "--host-buffers", "--without", names)
    assert counted(said, "sent") == 0 and counted(said, "packed") == 0


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_killed_rank_ends_the_program(mpi, tmp_path):
    body = """
    static double a[200000], b[200000];
    for (int i = 0;; ++i) {
      if (rank == 1 && i == 20) kill(getpid(), SIGKILL);
      MPI_Sendrecv(a, 200000, MPI_DOUBLE, (rank + 1) % size, 0, b, 200000, MPI_DOUBLE,
                   MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    """
    program = compiled(tmp_path, mpi, body)
    begin = time.monotonic()
    ended = run([*mpiexec(mpi, 3), *preloaded("--host-buffers"), program])
    assert ended.returncode != 0
    assert time.monotonic() - begin < 120


# Whatever it does then, the job ends.
@pytest.mark.parametrize("mpi", EACH_MPI)
@pytest.mark.parametrize("seed", range(3))
def test_a_rank_that_is_killed_at_any_time_ends_the_program(mpi, seed, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "random_exchange.c")
    random = Random(seed)
    ranks = random.randint(2, 4)
    words = [str(seed), "1000000", "kill", str(random.randrange(ranks)), str(random.randrange(400))]
    options = preloaded("--host-buffers", "--small", "64")
    ended = run([*mpiexec(mpi, ranks), *options, program, *words])
    assert ended.returncode != 0


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_rank_that_is_stopped_for_a_while_changes_nothing(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "random_exchange.c")
    options = preloaded("--host-buffers", "--counters", "--small", "64")
    for seed in (5, 6):
        random = Random(seed)
        words = [str(seed), "8"]
        stopped = ["stop", str(random.randrange(3)), str(random.randrange(60))]
        plain = run([*mpiexec(mpi, 3), program, *words])
        ours = run([*mpiexec(mpi, 3), *options, program, *words, *stopped])
        assert plain.returncode == ours.returncode == 0, plain.stderr + ours.stderr
        assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines()), seed
        assert counted(ours.stderr, "sent") > 30


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_the_edges_of_mpi_are_where_they_are_without(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "edges.c")

    def said(*options):
        ended = run([*mpiexec(mpi, 2), *options, program, tmp_path / "said"])
        assert ended.returncode == 0, ended.stderr
        lines = [(tmp_path / f"said.{rank}").read_text().splitlines() for rank in (0, 1)]
        # The MPICH of PyPI cuts what is too long, and takes types that aren't committed, without
        # saying so; with the library it is said.
        known = ("too long", "handled", " open,") if mpi == "abi" else ()
        return ended.stderr, [
            [line for line in of if not any(word in line for word in known)] for of in lines
        ]

    _, expected = said()
    assert min(map(len, expected)) > 60
    for mode, small in (("--host-buffers", "64"), ("--emulated", "64"), ("--emulated", "8192")):
        counters, ours = said(*preloaded(mode, "--counters", "--small", small))
        assert ours == expected, (mode, small)
        assert counted(counters, "sent") > 10


@pytest.mark.parametrize("mpi", EACH_MPI)
@pytest.mark.parametrize("level", ["single", "funneled", "serialized", "multiple"])
def test_threads_at_each_level(mpi, level, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "threads.c")
    plain = run([*mpiexec(mpi, 3), program, "single"])
    ours = run([*mpiexec(mpi, 3), *preloaded("--host-buffers", "--counters"), program, level])
    assert plain.returncode == ours.returncode == 0, plain.stderr + ours.stderr
    assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert counted(ours.stderr, "sent") == 3 * 4 * 6


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_memory_that_the_host_cannot_touch(mpi, tmp_path):
    """Emulated device memory: a touch of it by MPI would end the program."""
    body = """
    const int n = 300000;
    double* host = malloc(n * 8);
    double* to = quadriga_emulated_malloc(n * 8);
    double* from = quadriga_emulated_malloc(n * 8);
    MPI_Datatype column;
    MPI_Type_vector(100, 3, 1000, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int count = 2; count <= n; count *= 5) {
      for (int i = 0; i < n; ++i) host[i] = i + rank;
      quadriga_emulated_copy(from, host, n * 8);
      MPI_Status status;
      int got = 0;
      MPI_Sendrecv(from, count, MPI_DOUBLE, (rank + 1) % size, 0, to, n, MPI_DOUBLE,
                   (rank + size - 1) % size, 0, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_DOUBLE, &got);
      CHECK(got == count);
      quadriga_emulated_copy(host, to, n * 8);
      for (int i = 0; i < count; ++i) CHECK(host[i] == i + (rank + size - 1) % size);
    }
    MPI_Request requests[2];
    MPI_Irecv(host, 300, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from + 5, 1, column, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(host[299] == 99000 + 2 + 5 + (rank + size - 1) % size);
    """
    program = compiled(tmp_path, mpi, body)
    said = run_preloaded(program, mpi, 2, "--emulated")
    assert counted(said, "sent") > 4 and counted(said, "devices") > 4


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_nothing_is_taken_over_where_nobody_sends_envelopes(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "semantics.c")
    assert counted(run_preloaded(program, mpi, 2), "sent") == 0


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_start_takes_few_collective_calls(mpi, tmp_path, monkeypatch):
    monkeypatch.setenv("QUADRIGA_MPI_CUDA", "0")  # no rank has devices
    program = tmp_path / "starts"
    build(mpi, PROGRAMS / "starts.c", program, "-rdynamic", "-ldl")
    calls = {}
    for mode in ((), ("--host-buffers",)):
        ended = run([*mpiexec(mpi, 3), *preloaded(*mode), program])
        assert ended.returncode == 0, ended.stderr
        calls[mode] = sorted(ended.stdout.splitlines())
    # Without devices the ranks learn that nobody has any; else they join, and part together.
    assert calls[()] == ["Allgather 1"]
    assert calls[("--host-buffers",)] == [
        "Allgather 1",
        "Allreduce 1",
        "Barrier 1",
        "Comm_create_group 1",
    ]


ASKED_OF_TYPES = """
#include <dlfcn.h>
static int asked;
int PMPI_Type_get_contents(MPI_Datatype type, int a, int b, int c, int* i, MPI_Aint* j,
                           MPI_Datatype* k) {
  ++asked;
  return ((__typeof__(&PMPI_Type_get_contents))dlsym(RTLD_NEXT, "PMPI_Type_get_contents"))(
      type, a, b, c, i, j, k);
}
int main(int argc, char** argv) {
  double rows[2][30] = {{0}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 1; round <= 20; ++round) {
    MPI_Datatype type;
    MPI_Type_vector(10, 1, 3, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 30; ++i) rows[0][i] = rank == 0 ? round : -1;
    if (rank == 0)
      MPI_Send(rows[0], 1, type, 1, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(rows[0], 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(rows[0][27] == round && (rank == 0 || rows[0][28] == -1));
    MPI_Bcast(rows[0], 1, type, 0, MPI_COMM_WORLD);
    MPI_Type_free(&type);
  }
  MPI_Finalize();
  printf("%d %d\\n", rank, asked);
  return 0;
}
"""


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_types_of_messages_on_the_host_are_not_taken_apart(mpi, tmp_path):
    source = tmp_path / "types.c"
    source.write_text("#define _GNU_SOURCE\n" + HEAD + ASKED_OF_TYPES)
    program = tmp_path / "types"
    build(mpi, source, program, "-rdynamic", "-ldl")
    ended = run([*mpiexec(mpi, 2), *preloaded("--emulated"), program])
    assert ended.returncode == 0, ended.stderr
    asked = dict(map(str.split, ended.stdout.splitlines()))
    assert asked["0"] == "0"
    # MPICH receives no part of an element, so that what an envelope ends with has to be known.
    assert asked["1"] == "0" or mpi in ("mpich", "abi")


def test_an_unknown_mpi_is_named(tmp_path):
    ended = run([*preloaded(), sys.executable, "-c", "pass"])
    assert ended.returncode == 1 and "say --mpi openmpi or --mpi mpich or --mpi abi" in ended.stderr


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_wrong_setting_is_named_and_nothing_is_taken_over(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "semantics.c")
    ended = run([*mpiexec(mpi, 2), *preloaded("--without", "Teleport"), program])
    assert ended.returncode == 0
    assert "'Teleport' can't be switched off; expected some of Send, " in ended.stderr


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_layouts_of_others_benchmarks_arrive_as_without(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "benchmark_layouts.c")
    plain = run([*mpiexec(mpi, 2), program])
    assert plain.returncode == 0 and len(plain.stdout.splitlines()) == 2 * 15, plain.stderr
    for mode in ("--emulated", "--host-buffers"):
        options = preloaded(mode, "--counters", "--small", "64")
        ours = run([*mpiexec(mpi, 2), *options, program, "times"])
        assert ours.returncode == 0 and ours.stderr.count(" us\n") == 15, ours.stderr
        assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines())
        assert counted(ours.stderr, "sent") == 2 * 2 * 14  # All but 8 bytes, which are small.


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_the_halo_exchange(mpi, tmp_path):
    program = built(tmp_path, mpi, EXAMPLES / "halo.c")
    plain = run([*mpiexec(mpi, 4), program])
    ours = run([*mpiexec(mpi, 4), *preloaded("--emulated"), program])
    assert plain.returncode == ours.returncode == 0, plain.stderr + ours.stderr
    assert plain.stdout == ours.stdout and "sum" in ours.stdout


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_block_cyclic_matrix_changes_its_grid(mpi, tmp_path):
    program = built(tmp_path, mpi, EXAMPLES / "redistribute.c")
    for ranks, order in ((2, 301), (6, 517)):
        plain = run([*mpiexec(mpi, ranks), program, str(order)])
        options = preloaded("--emulated", "--counters", "--small", "64")
        ours = run([*mpiexec(mpi, ranks), *options, program, str(order)])
        assert plain.returncode == ours.returncode == 0, plain.stderr + ours.stderr
        assert plain.stdout == ours.stdout and ": 0 elements wrong" in ours.stdout
        assert counted(ours.stderr, "sent") == 2 * ranks + ranks * ranks


@pytest.mark.skipif(not is_here("openmpi"), reason="no preload library for openmpi")
def test_a_program_of_mpi4py_sends_from_devices():
    pytest.importorskip("mpi4py")
    program = EXAMPLES / "wave.py"
    plain = run([*mpiexec("openmpi", 3), sys.executable, program])
    options = ["--emulated", "--counters", "--mpi", "openmpi", "--small", "64"]
    ours = run([*mpiexec("openmpi", 3), *preloaded(*options), program])
    assert plain.returncode == ours.returncode == 0, plain.stderr + ours.stderr
    assert plain.stdout == ours.stdout and "energy" in ours.stdout
    assert counted(ours.stderr, "sent") == 3 * 2 * 40


@pytest.mark.parametrize("mpi", EACH_MPI)
@pytest.mark.parametrize("ranks", [2, 5])
def test_collectives_give_on_devices_what_they_give_on_the_host(mpi, ranks, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "collectives.c")
    for seed in ("1", "2"):
        plain = run([*mpiexec(mpi, ranks), program, seed])
        assert plain.returncode == 0, plain.stderr
        for mode in ("--emulated", "--host-buffers"):
            ours = run([*mpiexec(mpi, ranks), *preloaded(mode, "--counters"), program, seed])
            assert ours.returncode == 0, ours.stderr
            assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines())
            assert counted(ours.stderr, "collectives") > 40


@pytest.mark.parametrize("mpi", EACH_MPI)
@pytest.mark.parametrize("ranks", [2, 5])
def test_collectives_at_the_edges_of_mpi(mpi, ranks, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "collective_edges.c")
    plain = run([*mpiexec(mpi, ranks), program, "3"])
    assert plain.returncode == 0, plain.stderr
    for mode in ("--emulated", "--host-buffers"):
        ours = run([*mpiexec(mpi, ranks), *preloaded(mode, "--counters"), program, "3"])
        assert ours.returncode == 0, ours.stderr
        assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines())
        assert counted(ours.stderr, "collectives") > 40


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_large_collectives_of_devices_on_all_ranks_are_ours(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "collectives_together.c")
    ranks = 3 if mpi.startswith("openmpi") else 2  # MPICH's that wait take a core each
    plain = run([*mpiexec(mpi, ranks), program])
    assert plain.returncode == 0, plain.stderr
    expected = int(plain.stdout.split("ours ")[1].split()[0])
    for mode, more in (("--emulated", 0), ("--host-buffers", 4)):
        ours = run([*mpiexec(mpi, ranks), *preloaded(mode, "--counters"), program])
        assert ours.returncode == 0, ours.stderr
        assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines())
        # In the test mode memory of the host counts, too.
        assert counted(ours.stderr, "us") == ranks * (expected + more)


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_calls_that_know_no_devices_refuse_them_by_name(mpi, tmp_path):
    program = built(tmp_path, mpi, PROGRAMS / "refused.c")
    ended = run([*mpiexec(mpi, 2), *preloaded("--emulated"), program])
    assert ended.returncode == 0, ended.stderr
    names = ended.stdout.split()  # Of each call that the program made on a device's memory.
    assert len(names) == {"openmpi": 46, "abi": 70}.get(mpi, 69)
    for name in names:
        said = ended.stderr.count(f"{name} doesn't take memory of a device")
        assert said == 2 * names.count(name), name
    # On memory of the host they are MPI's own.
    assert run([*mpiexec(mpi, 2), program]).returncode == 0


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_collective_that_is_switched_off_names_itself(mpi, tmp_path):
    body = """
    double* data = quadriga_emulated_malloc(800);
    int class = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Bcast(data, 100, MPI_DOUBLE, 0, MPI_COMM_WORLD), &class);
    CHECK(class != MPI_SUCCESS);
    """
    program = compiled(tmp_path, mpi, body)
    said = run_preloaded(program, mpi, 2, "--emulated", "--without", "Bcast")
    assert said.count("MPI_Bcast of a device's memory is switched off") == 2
