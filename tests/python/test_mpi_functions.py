# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_mpi_functions.py: every function of an MPI's header that takes a buffer is taken
# over or refuses memory of devices; MPI_Isendrecv; receives that are switched off.
import re
import subprocess
from pathlib import Path

import pytest
from mpi_of_tests import (
    EACH_MPI,
    build,
    compiled,
    counted,
    has_large_counts,
    library_of,
    mpiexec,
    preloaded,
    preprocessed,
    run,
    run_preloaded,
)

PROGRAMS = Path(__file__).resolve().parents[1] / "mpi"

#: Functions with a pointer to anything that is no buffer which MPI reads or writes, and why.
OTHERS = {
    r"T_\w+": "the tools' interface",
    r"\w*(_attr|Attr_get|Attr_put|_keyval|Keyval_create)": "a pointer that MPI only keeps",
    r"(DUP_FN|Grequest_start|Register_datarep)": "state of a callback",
    r"Abi_\w+": "values of Fortran",
    r"(Alloc_mem|Free_mem|Win_allocate|Win_allocate_shared|Win_shared_query)": "MPI's own memory",
    r"(Address|Get_address|Win_detach|\w*[dD]etach(_buffer)?)": "an address, not what lies there",
    r"Session_attach_buffer": "refused as by MPI_Comm_attach_buffer; needs a session",
    r"File_\w+": "files are not meant",
}
POINTER = re.compile(r"(const\s+)?void\s*\*\s*\w*")
FUNCTION = re.compile(r"\bint\s+MPI_(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)")


def with_buffers(header):
    """Functions of a header, but for the form with large counts, that are given a void*."""
    found = []
    for name, given in FUNCTION.findall(header):
        arguments = re.sub(r"\([^()]*\)", "", given).split(",")  # None of a callback's.
        if any(POINTER.fullmatch(each.strip()) for each in arguments):
            found.append(name)
    others = re.compile("|".join(OTHERS))
    return {name for name in found if not others.fullmatch(name.removesuffix("_c"))}


def exported(mpi):
    said = subprocess.run(
        ["nm", "-D", "--defined-only", library_of(mpi)], capture_output=True, text=True
    )
    return set(re.findall(r" T MPI_(\w+)", said.stdout))


def test_functions_with_buffers_are_found():
    header = """
    int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
    int MPI_Op_create(MPI_User_function (*fn)(void *, void *, int *), int commute, MPI_Op *op);
    int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
    int MPI_Comm_set_attr(MPI_Comm comm, int key, void *value);
    """
    assert with_buffers(header) == {"Send", "Recv"}


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_each_function_with_buffers_is_taken_over_or_refuses(mpi, tmp_path):
    program = tmp_path / "refused"
    build(mpi, PROGRAMS / "refused.c", program)
    refused = run([*mpiexec(mpi, 2), *preloaded(mpi, "--emulated"), program])
    assert refused.returncode == 0, refused.stderr
    unknown = run([*mpiexec(mpi, 1), *preloaded(mpi, "--without", "Teleport"), program])
    taken = unknown.stderr.split("expected some of ")[1].splitlines()[0].split(", ")
    known = {name.removeprefix("MPI_") for name in refused.stdout.split()} | set(taken)
    # An envelope wouldn't fit the buffers of receives.
    small = run([*mpiexec(mpi, 1), *preloaded(mpi, "--small", "63"), program])
    assert "QUADRIGA_MPI_SMALL=63: expected at least 64 bytes" in small.stderr
    functions = with_buffers(preprocessed(mpi, tmp_path))
    assert len(functions) > 60
    assert {name.removesuffix("_c") for name in functions} - known == set()
    assert functions - exported(mpi) == set()


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_one_request_for_a_send_and_a_receive(mpi, tmp_path):
    """MPI_Isendrecv and its replacing form, by each call that ends requests, on devices."""
    if mpi == "openmpi":
        pytest.skip("Open MPI 4.1 has no MPI_Isendrecv")
    program = tmp_path / "pairs"
    forms = [[]]
    if has_large_counts(mpi):
        forms.append(["-include", str(PROGRAMS / "large_form.h")])
    for form in forms:
        build(mpi, PROGRAMS / "pairs.c", program, *form)
        if mpi == "openmpi5":
            assert run([*mpiexec(mpi, 3), program]).returncode == 0
        for mode in ("--emulated", "--host-buffers"):
            options = preloaded(mpi, mode, "--counters", "--small", "64")
            said = run([*mpiexec(mpi, 3), *options, program])
            assert said.returncode == 0, said.stderr
            assert counted(said.stderr, "sent") > 3 * 9 * 2


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_a_rank_that_switches_a_receive_off_gets_no_envelopes(mpi, tmp_path):
    program = tmp_path / "semantics"
    build(mpi, PROGRAMS / "semantics.c", program, "-O1")
    for name in (
        "Recv",
        "Irecv",
        "Recv_init",
        "Mrecv",
        "Imrecv",
        "Probe,Iprobe",
        "MPI_Mprobe,Improbe",
    ):
        said = run_preloaded(program, mpi, 2, "--host-buffers", "--small", "64", "--without", name)
        assert counted(said, "sent") == counted(said, "looked at") == 0, name
    # Of two ranks one opens them all the same.
    options = ("--host-buffers", "--counters", "--small", "64")
    command = [*mpiexec(mpi, 1), *preloaded(mpi, *options), program, ":", "-n", "1"]
    ended = run([*command, *preloaded(mpi, *options, "--without", "Recv"), program])
    assert ended.returncode == 0, ended.stderr
    assert counted(ended.stderr, "sent") == counted(ended.stderr, "received") > 0


@pytest.mark.parametrize("mpi", EACH_MPI)
def test_receives_that_are_switched_off_refuse_devices(mpi, tmp_path):
    body = """
    double* data = quadriga_emulated_malloc(8000);
    MPI_Request request;
    const MPI_Comm all = MPI_COMM_WORLD;
    int class = 0;
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Recv(data, 9, MPI_DOUBLE, rank, 0, all, MPI_STATUS_IGNORE), &class);
    CHECK(class != MPI_SUCCESS);
    MPI_Error_class(MPI_Irecv(data, 9, MPI_DOUBLE, rank, 0, all, &request), &class);
    CHECK(class != MPI_SUCCESS);
    MPI_Error_class(MPI_Recv_init(data, 9, MPI_DOUBLE, rank, 0, all, &request), &class);
    CHECK(class != MPI_SUCCESS);
    // The sender's way is its own: a device's bytes go packed, by MPI.
    double host[1000] = {0}, sent[1000];
    for (int i = 0; i < 1000; ++i) sent[i] = i;
    quadriga_emulated_copy(data, sent, 8000);
    MPI_Sendrecv(data, 1000, MPI_DOUBLE, 1 - rank, 0, host, 1000, MPI_DOUBLE, 1 - rank, 0,
                 all, MPI_STATUS_IGNORE);
    CHECK(host[999] == 999);
    """
    program = compiled(tmp_path, mpi, body)
    off = "Recv,Irecv,Recv_init"
    said = run_preloaded(program, mpi, 2, "--emulated", "--small", "64", "--without", off)
    for name in off.split(","):
        assert said.count(f"MPI_{name} of a device's memory is switched off") == 2
    assert counted(said, "sent") == 0 and counted(said, "devices") == 2
