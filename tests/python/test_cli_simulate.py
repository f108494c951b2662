# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cli_simulate.py: calls on described machines: figures, tables, pictures, errors.
import json
from pathlib import Path

import numpy as np
import pytest

import quadriga
from quadriga import linalg
from quadriga.cli.main import status_of

DONE, FAILED, MISUSED, UNAVAILABLE = range(4)
MACHINES = Path(__file__).parents[2] / "machines"
IDGRAF = MACHINES / "idgraf.json"
H200 = MACHINES / "h200x4.json"


@pytest.fixture
def run(capsys):
    """Runs a command line in this process: (status, output, errors)."""

    def call(*arguments):
        status = status_of(["simulate", *(str(each) for each in arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def figures(run, *arguments):
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (DONE, "")
    return [json.loads(line) for line in out.splitlines()]


def test_a_run_is_that_of_an_engine_under_the_virtual_clock(run):
    (found,) = figures(run, "cholesky", "--n", 7680, "--machine", f"{IDGRAF}:2", "--tile", 960)
    with quadriga.Engine(
        f"machine={IDGRAF}:2", virtual_clock=True, compute=False, trace=True
    ) as engine:
        same = linalg.simulate("cholesky", 7680, engine=engine, tile=960)
        counters = engine.counters()
    assert found["seconds"] == same.seconds == pytest.approx(counters.elapsed_seconds)
    assert found["tasks"] == same.tasks == 8 * 9 * 10 // 6
    assert found["gflops"] == pytest.approx(7680**3 / 3 / same.seconds / 1e9)
    assert 0 < found["of_bound"] <= 1
    assert found["counters"]["ended"] == same.tasks


def test_large_runs_are_simulated_whole(run):
    (found,) = figures(run, "potrf", "--n", 30720, "--machine", f"{IDGRAF}:8", "--tile", 480)
    assert found["tasks"] > 40_000
    assert found["extrapolated_from"] == []


def test_more_devices_and_memory_and_faster_links_help(run):
    base = ("gemm", "--n", 16384, "--machine", f"{IDGRAF}:1", "--tile", 1024)
    (one,) = figures(run, *base)
    (slow,) = figures(run, *base, "--link", "200MB/s")
    (small,) = figures(run, *base, "--memory", "600MB")
    by_count = figures(run, *base, "--sweep", "devices=1,2,4")
    assert slow["seconds"] > 1.2 * one["seconds"]
    assert small["host_bytes"] > 1.2 * one["host_bytes"]
    assert max(small["device_bytes"].values()) <= 600e6
    assert by_count[0]["seconds"] == one["seconds"]
    assert by_count[2]["seconds"] < 0.6 * by_count[1]["seconds"] < 0.4 * one["seconds"]


def test_a_table_has_a_row_for_each_value_and_policy(run):
    arguments = ("cholesky", "--n", 8192, "--machine", H200, "--compare", "--sweep", "n=4096,9001")
    status, out, _ = run(*arguments)
    assert status == DONE
    head, *rows = out.splitlines()
    assert head.split()[:3] == ["n", "policy", "time"]
    expected = [(n, name) for n in ("4096", "9001") for name in quadriga.policies()]
    assert [tuple(row.split()[:2]) for row in rows] == expected
    assert [each["sizes"] for each in figures(run, *arguments)][-1] == [9001]


@pytest.mark.parametrize(
    "arguments",
    [
        ("potrf", "--n", 30720, "--dtype", "float32", "--tile", 960, "--machine", f"{IDGRAF}:8"),
        ("potrf", "--n", 16384, "--tile", 1024, "--machine", f"{IDGRAF}:8"),
        ("gemm", "--n", 16384, "--tile", 1024, "--machine", f"{IDGRAF}:4"),
        ("gemm", "--n", 16384, "--tile", 1024, "--machine", f"{IDGRAF}:8", "--memory", "300MB"),
        ("potrf", "--n", 20000, "--machine", f"{H200}:4"),
    ],
)
def test_the_default_is_near_the_best_policy(run, arguments):
    rates = {each["policy"]: each["gflops"] for each in figures(run, *arguments, "--compare")}
    (default,) = figures(run, *arguments)
    # It is affinity, and knows more of this size by now.
    assert default["gflops"] >= 0.999 * rates["affinity"]
    assert default["gflops"] >= 0.97 * max(rates.values()), rates


def test_a_report_and_a_picture_are_written(run, tmp_path):
    report, trace, plot = (tmp_path / name for name in ("a.html", "a.json", "a.svg"))
    base = ("potrf", "--n", 9216, "--machine", f"{IDGRAF}:2", "--tile", 1024)
    status, out, _ = run(*base, "--report", report, "--trace", trace)
    assert status == DONE
    assert f"{report}: report written" in out
    assert "dpotrf" in report.read_text()
    assert json.loads(trace.read_text())
    pytest.importorskip("matplotlib")
    status, out, _ = run(*base, "--sweep", "memory=400MB,1GiB", "--compare", "--plot", plot)
    assert status == DONE
    assert plot.read_text().count("steal") >= 1


@pytest.fixture
def recorded(tmp_path):
    """The trace of a program of its own codelets, which ran here."""

    @quadriga.codelet(
        access=["read", "update"], host_only=False, cost=quadriga.Cost("dgemm", 100, 1e6)
    )
    def add(a, b):
        b += a

    @quadriga.codelet(access=["commute"])
    def touch(a):
        a += 1

    path = tmp_path / "program.json"
    with quadriga.Engine("emulated:2,memory=1MiB", trace=path) as engine:
        data = [engine.data(np.ones((100, 100))) for _ in range(6)]
        part = engine.temporary((100, 100), float)
        first = engine.submit(add, data[0].read(), data[1].update())
        for k in range(40):
            engine.submit(add, data[k % 6].read(), data[(k + 1) % 6].update(), priority=k % 3)
        engine.submit(quadriga.codelet(access=["write"], name="zero")(zero), part.write())
        engine.submit(touch, data[2].commute())
        engine.submit(touch, data[3].commute())
        assert first.result() is None
        engine.wait()
    return path


def zero(a):
    a[:] = 0


def test_a_trace_of_a_call_runs_again_as_it_was(run, tmp_path):
    for arguments in (
        ("potrf", "--n", 9600, "--machine", f"{IDGRAF}:3", "--tile", 480, "--memory", "300MB"),
        ("gemm", "--n", 5000, "--machine", f"{H200}:4"),
    ):
        path = tmp_path / "call.json"
        (found,) = figures(run, *arguments, "--trace", path)
        machine = arguments[4:5] + arguments[7:] if "--tile" in arguments else arguments[4:5]
        (again,) = figures(run, path, "--machine", *machine)
        assert again["tasks"] == found["tasks"]
        assert again["seconds"] == found["seconds"]
        assert again["host_bytes"] == found["host_bytes"]


def test_a_trace_of_any_program_runs_on_another_machine(run, recorded):
    (one,) = figures(run, recorded, "--machine", f"{IDGRAF}:1")
    assert one["tasks"] == 44
    assert one["as_measured"] == 3
    slow, fast = figures(run, recorded, "--machine", f"{IDGRAF}:2", "--sweep", "link=10MB/s,5GB/s")
    assert slow["seconds"] > 2 * fast["seconds"]
    status, out, _ = run(recorded, "--machine", f"{IDGRAF}:2", "--compare")
    assert status == DONE
    assert len(out.splitlines()) == 1 + len(quadriga.policies())
    status, out, _ = run(recorded, "--machine", H200)
    assert "3 take as long as there" in out


def test_damaged_traces_are_refused(run, recorded, tmp_path):
    whole = json.loads(recorded.read_text())
    tasks = whole["quadriga"]["tasks"]

    def refused(words):
        path = tmp_path / "damaged.json"
        path.write_text(json.dumps(whole))
        status, _, err = run(path, "--machine", f"{IDGRAF}:1")
        assert status in (FAILED, UNAVAILABLE)
        assert words in err

    kept = tasks[0]["operands"]
    for operands, words in (
        ([[99, "read"], [1, "update"]], "data 99 of the trace"),
        ([[0, "reads"]], "damaged"),
        ([[-1, "read"]], "damaged"),
        ("all", "damaged"),
    ):
        tasks[0]["operands"] = operands
        refused(words)
    tasks[0]["operands"] = kept
    tasks[3]["follows"] = [10**6]
    refused("doesn't come before it")
    del tasks[3]["follows"]
    tasks[0]["cost"] = ["unheard", 100, 1e6]
    refused("unheard")
    del tasks[0]["operands"]
    refused("doesn't say what its tasks access")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("potrf", "--n", 512, "--machine", MACHINES / "p100x2.json"), "no time of kernel 'dgemm'"),
        (("potrf", "--n", 512, "--machine", "no.json"), "no.json"),
        (("potrf", "--n", 512, "--machine", f"{IDGRAF}:0"), "at least one device"),
        (("potrf", "--n", 512, "--machine", f"{IDGRAF}:99"), "99"),
        (("potrf", "--n", 0, "--machine", IDGRAF), "--n"),
        (("potrf", "--n", 512, "--machine", IDGRAF, "--k", 3), "for products"),
        (("potrf", "--n", 512, "--machine", IDGRAF, "--memory", "much"), "much"),
        (("potrf", "--n", 512, "--machine", IDGRAF, "--policy", "best"), "unknown policy 'best'"),
        (("potrf", "--n", 512, "--machine", IDGRAF, "--sweep", "cores=1,2"), "cores=1,2"),
        (("potrf", "--n", 512, "--machine", IDGRAF, "--sweep", "tile=1,x"), "tile=1,x"),
        (("potrf", "--n", 512, "--machine", IDGRAF, "--sweep", "memory=2Q"), "2Q"),
        (("potrf", "--n", 512, "--machine", IDGRAF, "--plot", "x.svg"), "--plot needs --sweep"),
        (("potrf", "--n", 512, "--machine", IDGRAF, "--compare", "--policy", "steal"), "--policy"),
        (("lu", "--n", 512, "--machine", IDGRAF), "'lu' is no operation"),
        (("potrf", "--machine", IDGRAF), "--n"),
        ((IDGRAF, "--machine", IDGRAF), "isn't a Quadriga trace"),
    ],
)
def test_bad_input_is_named(run, arguments, words):
    status, _, err = run(*arguments)
    assert status in (FAILED, MISUSED)
    assert words in err


def test_other_engines_are_refused():
    with quadriga.Engine(f"machine={IDGRAF}:1", virtual_clock=True, compute=False) as engine:
        linalg.simulate("matmul", 256, 256, 256, engine=engine)
        with pytest.raises(quadriga.InvalidArgument, match="ran nothing else"):
            linalg.simulate("matmul", 256, 256, 256, engine=engine)
    with (
        quadriga.Engine("cpu:1") as engine,
        pytest.raises(quadriga.InvalidArgument, match="virtual clock"),
    ):
        linalg.simulate("cholesky", 256, engine=engine)


def test_progress_goes_up_to_one():
    seen = []
    with quadriga.Engine(f"machine={IDGRAF}:2", virtual_clock=True, compute=False) as engine:
        linalg.simulate("cholesky", 9600, engine=engine, tile=480, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_a_comparison_has_all_policies(run):
    found = figures(run, "cholesky", "--n", 7680, "--machine", f"{IDGRAF}:4", "--compare")
    assert [each["policy"] for each in found] == list(quadriga.policies())
    assert {"affinity", "data-first", "earliest-finish", "steal", "weight"} <= set(
        quadriga.policies()
    )
    assert all(0 < each["of_bound"] <= 1 for each in found)


def test_the_rule_of_eviction_can_be_chosen(run):
    base = ("gemm", "--n", 16384, "--machine", f"{IDGRAF}:1", "--tile", 1024, "--memory", "600MB")
    (usual,) = figures(run, *base)
    (belady,) = figures(run, *base, "--eviction", "farthest_use")
    (by_age,) = figures(run, *base, "--eviction", "least_recent")
    assert usual["eviction"] == "policy"
    assert belady["host_bytes"] == usual["host_bytes"] < by_age["host_bytes"]
    assert by_age["eviction"] == "least_recent"
    assert quadriga.config["eviction"] == "policy"
    status, _, err = run(*base, "--eviction", "luck")
    assert status == MISUSED
    assert "luck" in err


@pytest.fixture
def stated(tmp_path):
    """Writes a description in which some figures differ: change(json)."""

    def write(file, change):
        described = json.loads(Path(file).read_text())
        change(described)
        path = tmp_path / "stated.json"
        path.write_text(json.dumps(described))
        return path

    return write


def test_the_true_description_believed_changes_nothing(run):
    base = ("cholesky", "--n", 15360, "--machine", f"{IDGRAF}:4", "--tile", 960)
    (plain,) = figures(run, *base)
    (same,) = figures(run, *base, "--believed", IDGRAF)
    assert same.pop("believed") == str(IDGRAF)
    assert same == plain


def test_a_wrong_link_costs_little(run, stated):
    def ten_times_as_fast(machine):
        machine["links"]["host-gpu1"]["bandwidth"] *= 10

    base = ("gemm", "--n", 16384, "--machine", f"{IDGRAF}:4", "--tile", 1024)
    (plain,) = figures(run, *base)
    (wrong,) = figures(run, *base, "--believed", stated(IDGRAF, ten_times_as_fast))
    assert wrong["seconds"] <= 1.15 * plain["seconds"]
    assert wrong["of_bound"] == pytest.approx(
        plain["of_bound"] * plain["seconds"] / wrong["seconds"]
    )


def test_a_belief_in_other_devices_is_refused(run, stated):
    base = ("gemm", "--n", 512, "--machine", IDGRAF)
    status, _, err = run(*base, "--believed", H200)
    assert status == MISUSED
    assert "believed: 4 devices, the machine has 8" in " ".join(err.split())
    status, _, err = run(*base, "--believed", "no.json")
    assert status == MISUSED
    assert "no.json" in err


def test_a_trace_shows_its_progress(recorded):
    seen = []
    with quadriga.Engine(f"machine={IDGRAF}:1", virtual_clock=True, compute=False) as engine:
        quadriga.report.rerun(quadriga.report.load(recorded), engine, seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1
