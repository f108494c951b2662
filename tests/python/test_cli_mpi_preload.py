# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cli_mpi_preload.py: programs that mpi-preload can't help say so before they run.
import shutil
import subprocess

import pytest
from mpi_of_tests import by_command, compiled, is_here, mpiexec, run, run_preloaded

NOTHING = "int main(void) { return 0; }\n"


def refusal(*words):
    ended = run([*by_command(), *words])
    assert ended.returncode == 1 and ended.stdout == "", ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_a_program_that_is_not_there_is_named():
    assert "there is no program ./nowhere" in refusal("./nowhere")
    assert "there is no program ./nowhere" in refusal("--mpi", "openmpi", "./nowhere")


@pytest.mark.parametrize("launcher", ["mpiexec", "/usr/bin/mpirun", "mpiexec.openmpi"])
def test_a_launcher_comes_first(launcher):
    said = refusal("--mpi", "openmpi", launcher, "-n", "2", "./program")
    assert f"{launcher} starts the ranks" in said and "mpiexec -n 4 quadriga mpi-preload" in said


@pytest.mark.parametrize("option", ["-static", "-static-pie"])
def test_a_statically_linked_program_is_refused(option, tmp_path):
    source = tmp_path / "program.c"
    source.write_text(NOTHING)
    program = tmp_path / "program"
    compiler = shutil.which("cc") or pytest.skip("no compiler")
    built = subprocess.run([compiler, option, source, "-o", program], capture_output=True)
    if built.returncode != 0:
        pytest.skip("no static C library")
    assert "is linked statically" in refusal("--mpi", "openmpi", str(program))


@pytest.mark.skipif(not is_here("openmpi"), reason="no preload library for openmpi")
def test_a_program_of_another_mpi_is_named(tmp_path):
    program = compiled(tmp_path, "openmpi", "")
    assert "is linked with openmpi, not mpich" in refusal("--mpi", "mpich", str(program))
    ended = run([*by_command("--mpi", "openmpi", "--print"), str(program)])
    assert ended.returncode == 0 and ended.stdout.endswith("libquadriga-preload-openmpi.so\n")


@pytest.mark.skipif(not is_here("openmpi"), reason="no preload library for openmpi")
def test_programs_without_mpi_and_scripts_run_as_they_are(tmp_path):
    for program in ("/bin/echo", tmp_path / "script"):
        if program != "/bin/echo":
            program.write_text('#!/bin/sh\necho "$@"\n')
            program.chmod(0o755)
        ended = run([*mpiexec("openmpi", 2), *by_command("--counters"), program, "here"])
        assert ended.returncode == 0 and ended.stdout == "here\nhere\n", ended.stderr


@pytest.mark.skipif(not is_here("openmpi"), reason="no preload library for openmpi")
def test_a_rank_of_its_own_needs_no_launcher(tmp_path):
    program = compiled(tmp_path, "openmpi", "CHECK(size == 1);")
    ended = run([*by_command("--host-buffers", "--counters"), program])
    assert ended.returncode == 0, ended.stderr
    assert "1 of 1 ranks; sent 0 messages" in ended.stderr


# MPICH's own interface, by which Intel's MPI and others are called: libmpi.so.12.
@pytest.mark.skipif(not is_here("mpich5"), reason="no MPICH of tools/mpi_of_pypi")
def test_mpichs_interface_under_its_own_name(tmp_path):
    body = """
    static double data[200000];
    MPI_Status status;
    int count = 0;
    data[199999] = rank;
    MPI_Sendrecv_replace(data, 200000, MPI_DOUBLE, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD,
                         &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(data[199999] == 1 - rank && count == 200000 && status.MPI_SOURCE == 1 - rank);
    """
    program = compiled(tmp_path, "mpich5", body)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    assert "libmpi.so.12 =>" in linked
    said = run_preloaded(program, "mpich5", 2, "--host-buffers")
    assert "2 of 2 ranks; sent 2 messages of 3200000 bytes, received 2" in said
