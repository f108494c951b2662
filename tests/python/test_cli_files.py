# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cli_files.py: commands and their files: which are refused, what is left behind.
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from paces_of_tests import becomes

from quadriga.beside import write_beside
from quadriga.cli.main import status_of

DONE, FAILED, MISUSED = range(3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with A, b and the asymmetric U, which is the current one."""
    monkeypatch.chdir(tmp_path)
    a = np.random.default_rng(0).standard_normal((40, 40))
    a = a @ a.T + 40 * np.eye(40)
    np.save("A.npy", a)
    np.save("U.npy", np.triu(a))
    np.save("b.npy", np.ones(40))
    return tmp_path


@pytest.fixture
def run(capsys):
    """Runs a command line in this process: its status and errors."""

    def call(*arguments):
        status = status_of([str(each) for each in arguments])
        return status, capsys.readouterr().err

    return call


class TestSymmetry:
    def test_solve_refuses_what_is_not_hermitian(self, folder, run):
        status, err = run("solve", "U.npy", "b.npy", "-o", "x.npy")
        assert status == FAILED
        assert "U.npy: the matrix isn't symmetric" in err
        assert not os.path.exists("x.npy")

    def test_unless_it_is_told_to_use_one_triangle(self, folder, run):
        assert run("solve", "U.npy", "b.npy", "-o", "x.npy", "--no-check-symmetric")[0] == DONE
        assert run("cholesky", "U.npy", "-o", "L.npy")[0] == DONE
        assert run("cholesky", "U.npy", "-o", "L.npy", "--check-symmetric")[0] == FAILED

    def test_what_is_hermitian_is_solved(self, folder, run):
        assert run("solve", "A.npy", "b.npy", "-o", "x.npy")[0] == DONE
        residual = np.load("A.npy") @ np.load("x.npy") - np.load("b.npy")
        assert np.abs(residual).max() < 1e-12


class TestOutputs:
    @pytest.mark.parametrize(
        ("command", "inputs", "output"),
        [
            ("cholesky", ["A.npy"], "A.npy"),
            ("cholesky", ["A.npy"], "./A.npy"),
            ("cholesky", ["A.npy"], "link.npy"),
            ("solve", ["A.npy", "b.npy"], "b.npy"),
            ("matmul", ["A.npy", "A.npy"], "A.npy"),
        ],
    )
    def test_one_that_is_an_input_is_refused(self, folder, run, command, inputs, output):
        os.symlink("A.npy", "link.npy")
        before = {name: (folder / name).read_bytes() for name in ("A.npy", "b.npy")}
        status, err = run(command, *inputs, "-o", output)
        assert status == MISUSED
        assert "are the same file" in err
        assert {name: (folder / name).read_bytes() for name in before} == before

    @pytest.mark.parametrize("option", ["-o", "--trace", "--spill"])
    def test_standard_output_is_refused(self, folder, run, option):
        output = [] if option == "-o" else ["-o", "L.npy"]
        status, err = run("cholesky", "A.npy", *output, option, "-")
        assert status == MISUSED
        assert "'-'" in err and "a file's name" in err
        assert not os.path.exists("-")

    @pytest.mark.parametrize("option", ["-o", "--trace", "--spill"])
    def test_an_empty_name_is_refused(self, folder, run, option):
        output = [] if option == "-o" else ["-o", "L.npy"]
        status, err = run("cholesky", "A.npy", *output, option, "")
        assert status == MISUSED
        assert "is empty: expected a file's name" in err

    def test_a_limit_of_file_sizes_is_named(self, folder):
        code = (
            "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
            "from quadriga.cli.main import status_of;"
            "sys.exit(status_of(['cholesky', 'A.npy', '-o', 'L.npy', '--devices', 'cpu:1']))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == FAILED
        assert "L.npy: needs 12.6 KiB, more than" in done.stderr and "ulimit -f" in done.stderr
        assert not os.path.exists("L.npy")

    @pytest.mark.parametrize(("before", "after"), [(0o600, 0o600), (0o664, 0o664), (None, 0o640)])
    def test_modes_are_kept_and_new_files_follow_the_umask(self, folder, before, after):
        target = folder / "out.html"
        if before is not None:
            target.write_text("before")
            target.chmod(before)
        mask = os.umask(0o027)
        try:
            write_beside(target, "after")
        finally:
            os.umask(mask)
        assert target.stat().st_mode & 0o777 == after


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing_half_written(folder, kind):
    n = 5000
    big = np.lib.format.open_memmap("A.npy", "w+", float, (n, n))
    big[...] = 0
    big.reshape(-1)[:: n + 1] = 2
    (folder / "L.npy").write_text("what was there")
    command = [
        sys.executable,
        "-m",
        "quadriga",
        "cholesky",
        "A.npy",
        "-o",
        "L.npy",
        "--tile",
        "100",
    ]
    for _ in range(20):
        (folder / "L.npy").write_text("what was there")
        process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            # Under nohup it would be ignored, as it should.
            preexec_fn=lambda: signal.signal(kind, signal.SIG_DFL),
        )
        assert becomes(lambda: any(name.endswith(".part") for name in os.listdir()))
        process.send_signal(kind)
        _, err = process.communicate(timeout=240)
        if process.returncode != DONE:  # else it had ended before
            break
    assert process.returncode == 128 + kind
    assert "nothing is left half-written" in err
    assert "Traceback" not in err
    assert (folder / "L.npy").read_text() == "what was there"
    assert sorted(os.listdir()) == ["A.npy", "L.npy", "U.npy", "b.npy"]


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:1,memory=8MiB"])
def test_an_input_that_is_cut_short_is_an_error(folder, devices):
    n = 4000
    big = np.lib.format.open_memmap("big.npy", "w+", float, (n, n))
    big[...] = 0
    big.reshape(-1)[:: n + 1] = 2
    command = ["matmul", "big.npy", "big.npy", "-o", "C.npy", "--tile", "100", "--devices", devices]
    for _ in range(20):
        size = os.path.getsize("big.npy")
        process = subprocess.Popen(
            [sys.executable, "-m", "quadriga", *command], stderr=subprocess.PIPE, text=True
        )
        assert becomes(lambda: any(name.endswith(".part") for name in os.listdir()))
        os.truncate("big.npy", 10_000)
        _, err = process.communicate(timeout=240)
        if process.returncode != DONE:  # else it had read all of it before
            break
        os.truncate("big.npy", size)
        os.remove("C.npy")
    assert (process.returncode, err.count("\n")) == (FAILED, 1), err
    assert "big.npy: the file became shorter while it was used" in err
    assert sorted(os.listdir()) == ["A.npy", "U.npy", "b.npy", "big.npy"]


class TestInputs:
    @pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
    def test_every_version_of_the_format(self, folder, run, version):
        with open("V.npy", "wb") as file:
            np.lib.format.write_array(file, np.load("A.npy"), version=version)
        assert run("cholesky", "V.npy", "-o", "L.npy")[0] == DONE

    def test_names_of_fields_in_any_script(self, folder, run):
        with open("V.npy", "wb") as file:
            np.lib.format.write_array(file, np.zeros(3, [("größe", "f8")]), version=(3, 0))
        status, err = run("cholesky", "V.npy", "-o", "L.npy")
        assert status == FAILED
        assert err.startswith("quadriga: V.npy")

    def test_a_header_too_long_to_read(self, folder, run):
        (folder / "V.npy").write_bytes(b"\x93NUMPY\x03\x00" + (2**31).to_bytes(4, "little"))
        status, err = run("cholesky", "V.npy", "-o", "L.npy")
        assert (status, "V.npy: not a .npy file: its header has" in err) == (FAILED, True)

    @pytest.mark.parametrize("rest", [b"", b"\x10", b"\x10\x00\x00\x00{'descr'"])
    def test_a_header_that_is_cut_off(self, folder, run, rest):
        (folder / "V.npy").write_bytes(b"\x93NUMPY\x03\x00" + rest)
        status, err = run("cholesky", "V.npy", "-o", "L.npy")
        assert (status, "V.npy: not a .npy file" in err) == (FAILED, True)

    def test_a_version_that_is_none(self, folder, run):
        (folder / "V.npy").write_bytes(b"\x93NUMPY\x04\x00" + bytes(100))
        status, err = run("cholesky", "V.npy", "-o", "L.npy")
        assert (status, "V.npy: not a .npy file" in err) == (FAILED, True)

    def test_a_header_that_is_a_program(self, folder, run):
        header = "{'descr': '<f8', 'fortran_order': print(1), 'shape': (1, 1), }".ljust(117) + "\n"
        (folder / "V.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header.encode() + bytes(8))
        status, err = run("cholesky", "V.npy", "-o", "L.npy")
        assert (status, "is more than a dictionary of constants" in err) == (FAILED, True)

    def test_matrices_that_do_not_fit_are_named(self, folder, run):
        np.save("C.npy", np.ones((3, 4)))
        status, err = run("matmul", "A.npy", "C.npy", "-o", "P.npy")
        assert status == FAILED
        assert "A.npy" in err and "C.npy" in err and "40 isn't 3" in err
