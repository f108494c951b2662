# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cli.py: the commands on files: what they write, say and end with.
import json
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.linalg
from paces_of_tests import becomes

import quadriga

DONE, FAILED, MISUSED, UNAVAILABLE = range(4)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with A, b and B, which is the current one."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    a = generator.standard_normal((120, 120))
    np.save("A.npy", a @ a.T + 120 * np.eye(120))
    np.save("b.npy", generator.standard_normal(120))
    np.save("B.npy", generator.standard_normal((120, 30)))
    return tmp_path


class TestComputing:
    @pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=256KiB"])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_solve(self, folder, run, devices, order):
        a, b = np.load("A.npy"), np.load("B.npy")
        np.save("A.npy", np.asarray(a, order=order))
        np.save("B.npy", np.asarray(b, order=order))
        status, out, err = run(
            "solve", "A.npy", "B.npy", "-o", "x.npy", "--devices", devices, "--tile", 32
        )
        assert (status, err) == (DONE, "")
        assert "x.npy: written" in out
        np.testing.assert_allclose(np.load("x.npy"), scipy.linalg.solve(a, b, assume_a="pos"))
        np.testing.assert_array_equal(np.load("B.npy"), b)
        assert sorted(os.listdir()) == ["A.npy", "B.npy", "b.npy", "x.npy"]
        assert os.stat("x.npy").st_mode & 0o777 == os.stat("A.npy").st_mode & 0o777

    def test_cholesky(self, folder, run):
        a = np.load("A.npy")
        assert run("cholesky", "A.npy", "-o", "L.npy")[0] == DONE
        np.testing.assert_allclose(np.load("L.npy"), scipy.linalg.cholesky(a))
        assert run("cholesky", "A.npy", "-o", "L.npy", "--lower", "--tile", 50)[0] == DONE
        np.testing.assert_allclose(np.load("L.npy"), np.linalg.cholesky(a))

    def test_matmul(self, folder, run):
        a, b = np.load("A.npy"), np.load("B.npy")
        assert run("matmul", "A.npy", "B.npy", "-o", "C.npy")[0] == DONE
        np.testing.assert_allclose(np.load("C.npy"), a @ b)
        assert run("matmul", "B.npy", "A.npy", "-o", "C.npy", "--trans-a", "T")[0] == DONE
        np.testing.assert_allclose(np.load("C.npy"), b.T @ a)

    @pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=256KiB"])
    def test_vectors(self, folder, run, devices):
        a, b, matrix = np.load("A.npy"), np.load("b.npy"), np.load("B.npy")
        for left, right, expected in (
            ("A.npy", "b.npy", a @ b),
            ("b.npy", "B.npy", b @ matrix),
            ("b.npy", "b.npy", b @ b),
        ):
            for more in ([], ["--trans-a", "T", "--trans-b", "N"]):
                command = ["matmul", left, right, "-o", "C.npy", "--devices", devices, *more]
                status, _, err = run(*command)
                assert status == DONE, err
                found = np.load("C.npy")
                assert found.shape == expected.shape
                np.testing.assert_allclose(found, expected)
                assert run(*command, "--estimate")[0] == DONE
        status, _, err = run("matmul", "B.npy", "b.npy", "-o", "D.npy")
        assert (status, "30 isn't 120" in err) == (FAILED, True)
        assert run("matmul", "B.npy", "b.npy", "-o", "D.npy", "--trans-a", "T")[0] == DONE
        np.testing.assert_allclose(np.load("D.npy"), matrix.T @ b)

    @pytest.mark.parametrize("dtype", ["f", "F", "i4", ">f8"])
    def test_types(self, folder, run, dtype):
        np.save("A.npy", (np.eye(5) * 4).astype(dtype))
        np.save("b.npy", np.ones(5).astype(dtype))
        assert run("solve", "A.npy", "b.npy", "-o", "x.npy")[0] == DONE
        x = np.load("x.npy")
        assert x.dtype == scipy.linalg.solve(np.load("A.npy"), np.load("b.npy")).dtype
        np.testing.assert_array_equal(x, np.full(5, 0.25))

    def test_empty(self, folder, run):
        np.save("A.npy", np.empty((0, 0)))
        np.save("b.npy", np.empty((0, 3)))
        assert run("solve", "A.npy", "b.npy", "-o", "x.npy")[0] == DONE
        assert np.load("x.npy").shape == (0, 3)
        assert run("cholesky", "A.npy", "-o", "L.npy")[0] == DONE

    def test_json(self, folder, run):
        status, out, _ = run(
            "solve",
            "A.npy",
            "b.npy",
            "-o",
            "x.npy",
            "--json",
            "--devices",
            "emulated:2,memory=1MiB",
        )
        assert status == DONE
        (line,) = out.splitlines()
        found = json.loads(line)
        assert found["command"] == "solve"
        assert found["output"] == "x.npy"
        assert found["devices"][:2] == ["emulated0", "emulated1"]
        assert found["counters"]["host_bytes"] > 0

    def test_estimate_runs_nothing(self, folder, run):
        for command in (
            ["solve", "A.npy", "b.npy"],
            ["cholesky", "A.npy"],
            ["matmul", "A.npy", "A.npy"],
        ):
            status, out, _ = run(*command, "-o", "x.npy", "--estimate")
            assert status == DONE
            assert "time" in out
            status, out, _ = run(*command, "-o", "x.npy", "--estimate", "--json")
            found = json.loads(out)
            assert found["seconds"] >= found["bound_seconds"]
            assert found["matrix_bytes"] > 0
        assert not os.path.exists("x.npy")

    @pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=256MiB"])
    def test_estimates_of_any_order_take_seconds(self, folder, run, devices):
        n = 1_000_000
        header = {"descr": "<f4", "fortran_order": True, "shape": (n, n)}
        try:
            with open("huge.npy", "wb") as file:  # all of it a hole
                np.lib.format.write_array_header_1_0(file, header)
                os.ftruncate(file.fileno(), file.tell() + 4 * n * n)
        except OSError as error:
            pytest.skip(f"no file of 4 TB here: {error}")
        for command in (["cholesky", "huge.npy"], ["matmul", "huge.npy", "huge.npy"]):
            begin = time.perf_counter()
            status, out, err = run(*command, "--estimate", "--devices", devices, "--json")
            assert time.perf_counter() - begin < 120
            assert status == DONE, err
            found = json.loads(out)
            assert len(found["extrapolated_from"]) == 3
            assert found["seconds"] >= found["bound_seconds"] > 0
            assert 0 < found["seconds_uncertainty"] < 1
            status, out, _ = run(*command, "--estimate", "--devices", devices)
            assert re.search(r"time .* ± \d+ % \(at least .*\)", out)
            assert "method           extrapolated from simulated programs of " in out

    def test_a_trace_and_its_report(self, folder, run):
        command = ["cholesky", "A.npy", "-o", "L.npy", "--trace", "t.json", "--tile", "40"]
        assert run(*command, "--devices", "emulated:2,memory=256KiB")[0] == DONE
        status, out, _ = run(
            "report", "t.json", "-o", "r.html", "--dot", "g.dot", "--perfetto", "p.json"
        )
        assert status == DONE
        assert "r.html: written" in out
        assert "emulated0" in (folder / "r.html").read_text()
        assert "digraph" in (folder / "g.dot").read_text()
        assert json.loads((folder / "p.json").read_text())["traceEvents"]
        status, out, _ = run("report", "t.json", "--json")
        assert status == DONE
        assert json.loads(out)["output"] == "t.html"


class TestBadFiles:
    def check(self, run, match, *arguments):
        before = sorted(os.listdir())
        status, out, err = run(*arguments, "-o", "out.npy")
        assert status == FAILED, err
        assert out == ""
        assert match in err
        assert sorted(os.listdir()) == before

    def test_missing(self, folder, run):
        self.check(run, "nothing.npy: No such file", "cholesky", "nothing.npy")
        self.check(run, "nothing.npy: No such file", "solve", "A.npy", "nothing.npy")

    def test_truncated(self, folder, run):
        for size in (1000, 90, 8, 3, 0):
            os.truncate("A.npy", size)
            match = "truncated" if size >= 128 else "not a .npy file"
            self.check(run, match, "cholesky", "A.npy")

    def test_lying(self, folder, run):
        content = (folder / "A.npy").read_bytes()
        for old, new, match in (
            (b"(120, 120)", b"(120, 999)", "truncated"),
            (b"(120, 120)", b"(120, 12) ", "longer than its header says"),
            (b"(120, 120)", b"(-10, 120)", "shape"),
            (b"(120, 120)", b"(1e9, 120)", "shape"),
            (b"(120, 120)", b"(True, 1) ", "shape"),
            (b"'<f8'", b"'<q8'", "not a .npy file"),
            (b"NUMPY\x01", b"NUMPY\x09", "not a .npy file"),
            (b"{'descr'", b"{'desc!'", "not a .npy file"),
        ):
            (folder / "A.npy").write_bytes(content.replace(old, new))
            self.check(run, match, "cholesky", "A.npy")

    def test_headers_that_are_too_long(self, folder, run):
        size = (1 << 31).to_bytes(4, "little")
        (folder / "A.npy").write_bytes(b"\x93NUMPY\x02\x00" + size + b"{}")
        self.check(run, "not a .npy file: its header has 2147483648 bytes", "cholesky", "A.npy")

    def test_what_is_no_file(self, folder, run):
        os.mkfifo("pipe")
        self.check(run, "pipe: is not a regular file", "cholesky", "pipe")
        self.check(run, "/dev/zero: is not a regular file", "cholesky", "/dev/zero")

    def test_pickles_are_not_opened(self, folder, run):
        class Trap:
            def __reduce__(self):
                return os.mkdir, ("trapped",)

        np.save("A.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
        self.check(run, "objects", "cholesky", "A.npy")
        (folder / "A.npy").write_bytes(pickle.dumps(Trap()))
        self.check(run, "not a .npy file", "cholesky", "A.npy")

    def test_wrong_shapes(self, folder, run):
        self.check(run, "expected a square matrix", "cholesky", "B.npy")
        self.check(run, "expected a square matrix", "solve", "b.npy", "b.npy")
        np.save("c.npy", np.ones((2, 2, 2)))
        self.check(run, "c.npy: shape (2, 2, 2): expected a matrix or a vector",
                   "matmul", "A.npy", "c.npy")  # fmt: skip
        np.save("c.npy", np.float64(1))
        self.check(run, "expected a matrix or a vector", "matmul", "c.npy", "A.npy")
        self.check(run, "30 isn't 120", "matmul", "B.npy", "A.npy")
        np.save("c.npy", np.ones(7))
        self.check(run, "expected as many rows", "solve", "A.npy", "c.npy")

    @pytest.mark.parametrize("dtype", ["e", "g", "U3"])
    def test_wrong_types(self, folder, run, dtype):
        np.save("A.npy", np.zeros((2, 2), dtype))
        self.check(run, "float32, float64", "cholesky", "A.npy")

    def test_wrong_content(self, folder, run):
        np.save("A.npy", -np.eye(120))
        self.check(run, "1-th leading minor", "cholesky", "A.npy")
        self.check(run, "1-th leading minor", "solve", "A.npy", "b.npy")
        np.save("A.npy", np.eye(120))
        np.save("c.npy", np.full(120, np.inf))
        self.check(run, "c.npy: array must not contain infs or NaNs", "solve", "A.npy", "c.npy")
        np.save("A.npy", np.full((3, 3), np.nan))
        self.check(run, "A.npy: array must not contain infs or NaNs", "cholesky", "A.npy")
        np.save("A.npy", np.tri(120) + 200 * np.eye(120))
        self.check(run, "isn't symmetric", "cholesky", "A.npy", "--check-symmetric")

    def test_wrong_matrices_are_named(self, folder, run):
        np.save("A.npy", np.load("A.npy") - 300 * np.eye(120))
        for command in (["cholesky", "A.npy"], ["solve", "A.npy", "b.npy"]):
            status, _, err = run(*command, "-o", "x.npy")
            assert status == FAILED
            assert err.startswith("quadriga: A.npy: ") and "leading minor" in err
        assert run("report", "missing.json")[2] == (
            "quadriga: missing.json: No such file or directory\n"
        )

    def test_a_folder_that_is_not_there(self, folder, run):
        status, _, err = run("cholesky", "A.npy", "-o", "nowhere/L.npy")
        assert status == FAILED
        assert "nowhere" in err

    def test_outputs_that_are_no_files(self, folder, run):
        os.mkfifo("pipe")
        for output in ("pipe", "/dev/full", "/proc/L.npy"):
            status, _, err = run("cholesky", "A.npy", "-o", output)
            assert status == FAILED
            assert output in err
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)
        status, _, err = run("cholesky", "A.npy", "-o", "L.npy", "--trace", "nowhere/t.json")
        assert (status, os.path.exists("L.npy")) == (FAILED, False)
        assert "nowhere/t.json" in err

    def test_an_output_through_a_link_goes_where_the_link_points(self, folder, run):
        os.symlink("far.npy", "L.npy")
        assert run("cholesky", "A.npy", "-o", "L.npy")[0] == DONE
        assert os.path.islink("L.npy")
        np.testing.assert_allclose(np.load("far.npy"), scipy.linalg.cholesky(np.load("A.npy")))

    def test_long_names(self, folder, run):
        name = "x" * 251 + ".npy"
        assert run("cholesky", "A.npy", "-o", name)[0] == DONE
        assert run("cholesky", "A.npy", "-o", "x" + name)[0] == FAILED

    def test_a_full_disk_is_known_before_the_work(self, folder):
        # A limit on the size of files stands for a disk that has no room, and is named.
        program = (
            "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000));"
            "from quadriga.cli import main; main(['cholesky', 'A.npy', '-o', 'L.npy'])"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert ended.returncode == FAILED
        assert "L.npy: needs" in ended.stderr
        assert "ulimit -f" in ended.stderr
        assert sorted(os.listdir()) == ["A.npy", "B.npy", "b.npy"]

    def test_a_trace_that_is_none(self, folder, run):
        (folder / "t.json").write_text("{")
        for command in (["report", "t.json"], ["report", "missing.json"]):
            status, _, err = run(*command)
            assert status == FAILED
            assert err.startswith("quadriga: ")
        assert not os.path.exists("t.html")

    def test_without_standard_error_the_output_is_the_same(self, folder, run):
        assert run("cholesky", "A.npy", "-o", "L.npy")[0] == DONE
        command = [sys.executable, "-c", "from quadriga.cli import main; main()",
                   "cholesky", "A.npy", "-o", "closed.npy"]  # fmt: skip
        assert subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *command]).returncode == DONE
        assert (folder / "closed.npy").read_bytes() == (folder / "L.npy").read_bytes()

    def test_an_interrupt_leaves_nothing_half_written(self, folder):
        n = 6000
        big = np.lib.format.open_memmap("A.npy", "w+", float, (n, n))
        big[...] = 0
        big.reshape(-1)[:: n + 1] = 2
        command = [sys.executable, "-c", "from quadriga.cli import main; main()",
                   "cholesky", "A.npy", "-o", "L.npy", "--tile", "200"]  # fmt: skip
        for _ in range(20):
            (folder / "L.npy").write_text("what was there")
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            assert becomes(lambda: any(name.endswith(".part") for name in os.listdir()))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=240)
            if process.returncode != DONE:  # else it had ended before
                break
        assert process.returncode == FAILED
        assert "interrupted" in err
        assert (folder / "L.npy").read_text() == "what was there"
        assert sorted(os.listdir()) == ["A.npy", "B.npy", "L.npy", "b.npy"]


class TestMisuse:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["frobnicate"],
            ["solve", "A.npy"],
            ["cholesky", "A.npy"],
            ["cholesky", "A.npy", "-o", "L.npy", "--tile", "0"],
            ["cholesky", "A.npy", "-o", "L.npy", "--policy", "luck"],
            ["cholesky", "A.npy", "-o", "L.npy", "--devices", "toaster:3"],
            ["cholesky", "A.npy", "-o", "L.npy", "--trace", "L.npy"],
            ["cholesky", "A.npy", "-o", "L.npy", "--trace", "A.npy"],
            ["solve", "A.npy", "b.npy", "-o", "L.npy", "--spill", "./b.npy"],
            ["solve", "A.npy", "b.npy", "-o", "L.npy", "--spill", "t", "--trace", "t"],
            ["report", "A.npy", "-o", "A.npy"],
            ["report", "A.npy", "--dot", "A.html"],
            ["report", "A.npy", "-o", "-"],
            ["report", "A.npy", "--svg", "-"],
            ["simulate", "matmul", "--n", "9", "--machine", "A.npy", "--trace", "-"],
            ["info", "--devices", "toaster:3"],
            ["completion", "tcsh"],
            ["bench", "speed"],
        ],
    )
    def test_ends_with_2(self, folder, run, arguments):
        status, out, err = run(*arguments)
        assert status == MISUSED
        assert out == ""
        assert "Usage" in err or "Error" in err
        assert not os.path.exists("L.npy")

    def test_an_estimate_needs_no_output(self, folder, run):
        assert run("cholesky", "A.npy", "--estimate")[0] == DONE
        status, _, err = run("cholesky", "A.npy")
        assert status == MISUSED
        assert "--output" in err

    def test_devices_without_room_for_anything(self, folder, run):
        devices = "emulated:2,memory=1KiB"
        status, _, err = run("cholesky", "A.npy", "-o", "L.npy", "--devices", devices)
        assert status == MISUSED
        assert "emulated0" in err and "1024 bytes" in err and "4096" in err

    def test_options_that_are_no_sizes_are_named(self, folder, run):
        status, _, err = run("cholesky", "A.npy", "-o", "L.npy", "--host-memory", "lots")
        assert status == MISUSED
        assert "--host-memory" in err and "lots" in err

    def test_policies_that_nobody_registered(self, folder, run, monkeypatch):
        for command in ("cholesky", "demo"):
            assert (
                "--policy [affinity|data-first|earliest-finish|steal|weight]"
                in run(command, "--help")[1]
            )
        registered = {"affinity": "as it is", "of-a-user": "registered by the program"}
        monkeypatch.setattr("quadriga.cli.policy_name.policy.policies", lambda: registered)
        for command in (["cholesky", "A.npy", "-o", "L.npy"], ["demo"]):
            status, _, err = run(*command, "--policy", "steal")
            assert status == MISUSED
            assert "unknown policy 'steal'; registered are affinity, of-a-user" in err
        assert run("cholesky", "A.npy", "-o", "L.npy", "--policy", "affinity")[0] == DONE

    @pytest.mark.parametrize("variable", ["TILE=abc", "LOG_LEVEL=loud", "TRACE=t.json", "FOO=1"])
    def test_settings_from_outside_that_are_wrong(self, folder, variable):
        name, value = f"QUADRIGA_{variable}".split("=")
        done = subprocess.run(
            [sys.executable, "-c", "from quadriga.cli import main; main(['info'])"],
            env={**os.environ, name: value},
            capture_output=True,
            text=True,
        )
        assert done.returncode == MISUSED
        assert name in done.stderr and "Traceback" not in done.stderr

    def test_what_is_not_here_ends_with_3(self, folder, run):
        status, _, err = run("cholesky", "A.npy", "-o", "L.npy", "--devices", "cuda:1")
        if status == DONE:
            pytest.skip("there is a CUDA device here")
        assert status == UNAVAILABLE, err


def test_info(run):
    status, out, _ = run("info")
    assert status == DONE
    assert quadriga.__version__ in out
    assert "devices" in out
    status, out, _ = run("info", "--json", "--devices", "emulated:2,memory=1MiB")
    found = json.loads(out)
    assert [each["name"] for each in found["machine"]["devices"]] == ["emulated0", "emulated1"]
    assert found["settings"]["policy"]["value"] == "affinity"
    assert found["policies"] == quadriga.policies()
    assert all(f"{name}  " in run("info")[1] for name in quadriga.policies())


def test_version_and_help(run):
    assert run("--version")[1] == f"quadriga {quadriga.__version__}\n"
    for command in ([], *(["info"], ["solve"], ["cholesky"], ["matmul"], ["report"]),
                    *(["demo"], ["bench"], ["completion"])):  # fmt: skip
        status, out, _ = run(*command, "--help")
        assert status == DONE
        assert "Usage: quadriga" in out


@pytest.mark.parametrize(
    ("given", "meant"), [("matmu", "matmul"), ("gemm", "matmul"), ("potrf", "cholesky")]
)
def test_commands_that_dont_exist(run, given, meant):
    status, _, err = run(given)
    assert status == MISUSED
    assert f"No such command '{given}'. Did you mean '{meant}'?" in err


def test_commands_unlike_any(run):
    assert "No such command 'xyzzy'.\n" in run("xyzzy")[2]


def test_the_installed_command():
    ended = subprocess.run(
        [sys.executable, "-c", "from quadriga.cli import main; main()", "info"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0
    assert ended.stderr == ""
