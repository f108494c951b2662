# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_mpi_large_counts.py: programs that call MPI_Send_c and so on, preloaded.
from pathlib import Path

import pytest
from mpi_of_tests import (
    EACH_MPI,
    build,
    compiled,
    counted,
    has_large_counts,
    mpiexec,
    preloaded,
    run,
    run_preloaded,
)

PROGRAMS = Path(__file__).resolve().parents[1] / "mpi"
EACH_LARGE = [each for each in EACH_MPI if has_large_counts(each.values[0])]


def built(folder, mpi, name):
    program = folder / name
    options = ("-O1", "-include", str(PROGRAMS / "large_form.h"))
    build(mpi, PROGRAMS / f"{name}.c", program, *options)
    return program


@pytest.mark.parametrize("mpi", EACH_LARGE)
def test_random_messages_with_large_counts_arrive_as_without(mpi, tmp_path):
    program = built(tmp_path, mpi, "random_exchange")
    for seed, ranks in (("1", 2), ("2", 3)):
        plain = run([*mpiexec(mpi, ranks), program, seed, "8"])
        assert plain.returncode == 0, plain.stderr
        options = preloaded(mpi, "--host-buffers", "--counters", "--small", "64")
        ours = run([*mpiexec(mpi, ranks), *options, program, seed, "8"])
        assert ours.returncode == 0, ours.stderr
        assert counted(ours.stderr, "sent") > 30
        assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines()), seed


@pytest.mark.parametrize("mpi", EACH_LARGE)
def test_collectives_with_large_counts_give_what_they_give_on_the_host(mpi, tmp_path):
    program = built(tmp_path, mpi, "collectives")
    plain = run([*mpiexec(mpi, 3), program, "1"])
    ours = run([*mpiexec(mpi, 3), *preloaded(mpi, "--emulated", "--counters"), program, "1"])
    assert plain.returncode == ours.returncode == 0, plain.stderr + ours.stderr
    assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert counted(ours.stderr, "collectives") > 40


@pytest.mark.parametrize("mpi", EACH_LARGE)
def test_calls_with_large_counts_refuse_devices_by_name(mpi, tmp_path):
    program = built(tmp_path, mpi, "refused")
    ended = run([*mpiexec(mpi, 2), *preloaded(mpi, "--emulated"), program])
    assert ended.returncode == 0, ended.stderr
    without = (
        "MPI_Win_attach",
        "MPI_Fetch_and_op",
        "MPI_Compare_and_swap",
        "MPI_Psend_init",
        "MPI_Precv_init",
    )
    names = ended.stdout.split()
    assert len(names) == (70 if mpi == "abi" else 69)
    for name in names:
        call = name if name in without else f"{name}_c"
        said = ended.stderr.count(f"{call} doesn't take memory of a device")
        assert said == 2 * names.count(name), name


@pytest.mark.parametrize("mpi", EACH_LARGE)
def test_matched_messages_and_types_with_large_counts(mpi, tmp_path):
    """A message as long as an envelope is one for MPI_Imrecv_c; each maker's type is understood."""
    body = """
    const int other = 1 - rank;
    MPI_Count lengths[2] = {2, 3}, places[2] = {9, 2}, bytes[2] = {80, 8};
    MPI_Count shape[2] = {6, 7}, part[2] = {3, 4}, first[2] = {2, 1};
    const int how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, by[2] = {2, -1};
    const int argument[2] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 1};
    const MPI_Datatype fields[2] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Datatype types[11];
    MPI_Type_contiguous_c(5, MPI_DOUBLE, &types[0]);
    MPI_Type_vector_c(3, 2, 5, MPI_DOUBLE, &types[1]);
    MPI_Type_create_hvector_c(3, 2, 40, MPI_DOUBLE, &types[2]);
    MPI_Type_indexed_c(2, lengths, places, MPI_DOUBLE, &types[3]);
    MPI_Type_create_hindexed_c(2, lengths, bytes, MPI_DOUBLE, &types[4]);
    MPI_Type_create_indexed_block_c(2, 3, places, MPI_DOUBLE, &types[5]);
    MPI_Type_create_hindexed_block_c(2, 3, bytes, MPI_DOUBLE, &types[6]);
    MPI_Type_create_struct_c(2, lengths, bytes, fields, &types[7]);
    MPI_Type_create_subarray_c(2, shape, part, first, MPI_ORDER_FORTRAN, MPI_DOUBLE, &types[8]);
    MPI_Type_create_darray_c(2, rank, 2, shape, how, argument, grid, MPI_ORDER_C, MPI_DOUBLE,
                             &types[9]);
    MPI_Type_create_resized_c(types[1], -8, 160, &types[10]);
    double in[4000], out[4000];
    for (int i = 0; i < 4000; ++i) out[i] = i + 5000 * rank;
    double* device = quadriga_emulated_malloc ? quadriga_emulated_malloc(sizeof out) : out;
    if (quadriga_emulated_malloc) quadriga_emulated_copy(device, out, sizeof out);
    for (int t = 0; t < 11; ++t) {
      MPI_Message message;
      MPI_Request send, receive;
      MPI_Status status;
      MPI_Count got = 0;
      double sum = 0;
      MPI_Type_commit(&types[t]);
      memset(in, 0, sizeof in);
      MPI_Isend_c(device + 40, 20, types[t], other, t, MPI_COMM_WORLD, &send);
      MPI_Mprobe(other, t, MPI_COMM_WORLD, &message, &status);
      MPI_Imrecv_c(in, 4000, MPI_DOUBLE, &message, &receive);
      MPI_Wait(&receive, &status);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      MPI_Get_count_c(&status, MPI_DOUBLE, &got);
      for (int i = 0; i < 4000; ++i) sum += in[i] * (i % 13);
      printf("%d %d: %d %.0f\\n", rank, t, (int)got, sum);
    }
    """
    program = compiled(tmp_path, mpi, body)
    plain = run([*mpiexec(mpi, 2), program])
    assert plain.returncode == 0, plain.stderr
    assert len(plain.stdout.splitlines()) == 22
    for mode in ("--emulated", "--host-buffers"):
        options = preloaded(mpi, mode, "--counters", "--small", "64")
        ours = run([*mpiexec(mpi, 2), *options, program])
        assert ours.returncode == 0, ours.stderr
        assert sorted(ours.stdout.splitlines()) == sorted(plain.stdout.splitlines())
        assert counted(ours.stderr, "sent") == counted(ours.stderr, "looked at") == 22


@pytest.mark.parametrize("mpi", EACH_LARGE)
def test_a_matched_message_of_64_bytes_has_a_handle_of_ours(mpi, tmp_path):
    body = """
    char in[64] = {0}, out[64];
    MPI_Message message;
    MPI_Request request;
    memset(out, 7 + rank, sizeof out);
    MPI_Isend_c(out, 64, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
    MPI_Mprobe(1 - rank, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv_c(in, 64, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(message == MPI_MESSAGE_NULL && in[0] == 8 - rank && in[63] == 8 - rank);
    """
    program = compiled(tmp_path, mpi, body)
    said = run_preloaded(program, mpi, 2, "--host-buffers", "--small", "64")
    assert counted(said, "looked at") == 2 and counted(said, "sent") == 0
