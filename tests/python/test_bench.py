# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_bench.py: rows of benchmarks, their targets, and short runs of the programs.
import json
from pathlib import Path

import click.testing
import pytest
from paces_of_tests import at_some_pace

import quadriga
from quadriga.bench import commands, measure, program, rows, simulated_collectives, table
from quadriga.bench import messages as message_cases
from quadriga.cli.main import FAILED, MISUSED, UNAVAILABLE, status_of
from quadriga.errors import Error, InvalidArgument, Unavailable
from quadriga.machine import Machine

HOST = {"cpu": "a processor", "cores": 2}


def finish(benchmark, **raw):
    return rows.finish(benchmark, {"unit": "ns/task", "bound": 0.0, **raw}, HOST, "v0")


def run_json(*words):
    """The rows of `quadriga bench WORDS --json`, and what went to standard error."""
    result = click.testing.CliRunner().invoke(commands.bench, [*words, "--json", "--details"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_row_has_the_keys_in_order():
    row = finish("overhead", case="gemm3", value=100.0)
    assert tuple(row)[: len(rows.KEYS)] == rows.KEYS
    assert row["reference"] is None and row["ratio"] is None
    assert row["machine"] == HOST and row["commit"] == "v0"


def test_ratio_is_above_one_for_the_better():
    faster = finish("overhead", case="gemm3", value=100.0, reference="x", reference_value=700.0)
    assert faster["ratio"] == pytest.approx(7)
    rate = finish(
        "gemm", case="host", value=90.0, unit="GFLOP/s", reference="x", reference_value=100.0
    )
    assert rate["ratio"] == pytest.approx(0.9)
    assert rate["reached"] is False


@pytest.mark.parametrize(
    ("value", "reference", "reached"),
    [(100.0, 700.0, True), (100.0, 500.0, False), (301.0, 3000.0, False), (100.0, None, None)],
)
def test_every_target_of_a_case_counts(value, reference, reached):
    row = finish("overhead", case="gemm3", value=value, reference_value=reference)
    assert row["reached"] is reached


def test_targets_of_times_are_multiples_of_the_bound():
    row = {"case": "makespan-8", "unit": "s", "bound": 10.0}
    assert finish("gemm", **row, value=12.4)["reached"] is True
    assert finish("gemm", **row, value=12.6)["reached"] is False


def test_published_references():
    row = finish("potrf", case="bytes-4", value=4.0, unit="GiB")
    assert row["reference_value"] == 6.55 and row["ratio"] == pytest.approx(6.55 / 4)


def test_every_target_is_of_a_case():
    for benchmark, targets in rows.TARGETS.items():
        rows_of = message_cases.ROWS if benchmark == "messages" else measure.CASES[benchmark]
        assert set(targets) <= set(rows_of)


@pytest.mark.parametrize(
    ("case", "run"),
    [
        ("bytes-8", "devices-8"),
        ("makespan-2", "devices-2"),
        ("out-of-core-bytes", "out-of-core"),
        ("out-of-core", "out-of-core"),
        ("idgraf-600MB-rate", "idgraf-600MB"),
    ],
)
def test_cases_of_one_run_share_it(case, run):
    assert measure._run_of(case) == run


def fake_program(monkeypatch, answers):
    """Puts lists of lines in the place of the programs; returns the calls."""
    calls = []

    def run(name, *words):
        calls.append(name)
        if name == program.OURS and words == ("machine",):
            return iter([{**HOST, "commit": ""}])
        answer = answers[name].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return iter([answer])

    monkeypatch.setattr(program, "run", run)
    monkeypatch.setattr(program, "built", lambda name: True)
    return calls


def test_runs_alternate_and_medians_count(monkeypatch):
    ours = [{"value": x, "unit": "ns/task", "bound": 1.0} for x in (100.0, 900.0, 110.0)]
    theirs = [{"value": x, "reference": "StarPU 1.3.10"} for x in (2000.0, 1100.0, 1000.0)]
    calls = fake_program(monkeypatch, {program.OURS: ours, program.STARPU: theirs})
    (row,) = measure.overhead(["gemm3"], repeat=3)
    assert calls[1:] == [program.OURS, program.STARPU] * 3
    assert row["value"] == 110 and row["reference_value"] == 1100 and row["ratio"] == 10
    assert row["commit"] is None


def test_a_reference_that_does_not_start_is_null(monkeypatch):
    ours = [{"value": 100.0, "unit": "ns/task", "bound": 1.0} for _ in range(2)]
    fake_program(monkeypatch, {program.OURS: ours, program.STARPU: [Unavailable("no library")]})
    (row,) = measure.overhead(["chains"], repeat=2)
    assert row["reference"] is None and row["reference_value"] is None and row["value"] == 100


def messages_by(monkeypatch, ours, theirs):
    """Rows of 8 and 4096 bytes, from runs whose values are given by size."""
    runs = {program.OURS: iter(ours), program.MPI: iter(theirs)}
    calls = []

    def run(name, *words):
        if words == ("machine",):
            return iter([{**HOST, "commit": ""}])
        calls.append((name, *words))
        answer = next(runs[name])
        if isinstance(answer, Exception):
            raise answer
        made = {"case": "pingpong", "unit": "us one way", "bound": 0.1, "reference": "MPI 1"}
        return iter([{**made, "bytes": size, "value": value} for size, value in answer.items()])

    monkeypatch.setattr(program, "run", run)
    monkeypatch.setattr(program, "built", lambda name: True)
    return calls, list(measure.messages(["pingpong"], 3, (8, 4096), "0,1"))


def test_messages_alternate_with_mpi_size_by_size(monkeypatch):
    ours = [{8: 1.0, 4096: 3.0}, {8: 9.0, 4096: 2.0}, {8: 0.5, 4096: 8.0}]
    theirs = [{8: 0.5, 4096: 9.0}, {8: 0.4, 4096: 6.0}, {8: 3.0, 4096: 1.0}]
    calls, found = messages_by(monkeypatch, ours, theirs)
    assert [name for name, *_ in calls] == [program.OURS, program.MPI] * 3
    assert calls[0][-2:] == ("--pin", "0,1") and calls[1][-2:] == ("8,4096", "0,1")
    assert [row["case"] for row in found] == ["pingpong-8B", "pingpong-4KiB"]
    assert [row["value"] for row in found] == [1.0, 3.0]
    assert [row["reference_value"] for row in found] == [0.5, 6.0]
    assert [row["ratio"] for row in found] == [0.5, 2.0]
    assert [row["reached"] for row in found] == [True, True]


@pytest.mark.parametrize("failure", [Unavailable("no mpiexec"), Error("no network")])
def test_messages_without_an_mpi_that_runs(monkeypatch, failure):
    ours = [{8: 1.0, 4096: 2.0}] * 3
    calls, found = messages_by(monkeypatch, ours, [failure])
    assert len(calls) == 4
    assert [row["reference_value"] for row in found] == [None, None]
    assert [row["value"] for row in found] == [1.0, 2.0]


@pytest.mark.parametrize(("kind", "size"), [("pingpong", 64), ("bandwidth", 100_000)])
def test_messages_between_two_processes_are_measured(kind, size):
    (row,) = run_json("messages", "--case", kind, "--size", str(size), "--repeat", "1")
    assert row["case"] == message_cases.case_of(kind, size) and row["bytes"] == size
    assert row["value"] > 0 and row["bound"] > 0 and row["predicted"] > 0
    if program.built(program.MPI) and row["reference"]:
        assert row["reference_value"] > 0


def test_simulated_collectives_have_a_row_each(monkeypatch):
    answer = {"case": "x", "value": 30.0, "unit": "ms", "bound": 29.0, "spread": 1.01}

    def run(name, *words):
        return iter([{**HOST, "commit": ""} if words == ("machine",) else dict(answer)])

    monkeypatch.setattr(program, "run", run)
    found = list(measure.messages(["simulated"]))
    assert [row["case"] for row in found] == simulated_collectives.ROWS
    assert found[0]["reached"] is True and found[6]["value"] == 1.01


def test_a_collective_on_simulated_nodes():
    machine = program.machine_file("k40x4")
    words = ["--machine", machine, "--nodes", 4, "--rate", 5_000_000_000, "--bytes", 32_000_000]
    (row,) = program.run(program.OURS, "schedules", *words, "--orders", 6)
    assert row["bound"] <= row["value"] <= 1.15 * row["bound"]
    assert row["spread"] < 1.02 and row["read_back"] == 0
    (linear,) = program.run(program.OURS, "schedules", *words, "--algorithm", "linear")
    assert linear["value"] > 2 * row["value"]
    with pytest.raises(InvalidArgument, match="binomial"):
        list(program.run(program.OURS, "schedules", *words, "--algorithm", "star"))


def test_collectives_of_two_processes_are_measured():
    found = run_json("messages", "collectives", "--size", "4096", "--repeat", "1")
    names = [f"collectives-{name}-4KiB" for name in message_cases.COLLECTIVES]
    assert [row["case"] for row in found] == names
    assert all(row["value"] > 0 and row["bytes"] == 4096 for row in found)


def test_messages_between_devices_are_measured_beside_the_stated_link():
    devices = "emulated:2,memory=32MiB,peer=200MB/s"
    words = ["messages", "devices", "--devices", devices, "--size", "2097152", "--repeat", "1"]
    found = {row["case"]: row for row in run_json(*words)}
    assert {f"devices-{kind}-2MiB" for kind in message_cases._OF_LARGE} < found.keys()
    row = found["devices-contiguous-2MiB"]
    assert row["reference_value"] == 200e6 > max(0.95 * row["value"], row["predicted"] - 1)
    assert found["devices-opened-2MiB"]["value"] == found["devices-opened-2MiB"]["bound"] == 5
    assert found["devices-posted-2MiB"]["unit"] == "us"


def test_messages_with_wrong_options():
    for options in (["--pin", "x"], ["--pin", "0"]):
        with pytest.raises(InvalidArgument, match="--pin"):
            list(program.run(program.OURS, "messages", *options))
    with pytest.raises(InvalidArgument, match="pingpong, bandwidth and collectives"):
        list(program.run(program.OURS, "messages", "--case", "nothing"))


def test_unknown_cases_and_missing_programs(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="no case 'nonsense'"):
        list(measure.gemm(["nonsense"]))
    runner = click.testing.CliRunner()
    assert runner.invoke(commands.bench, ["gemm", "--case", "nonsense"]).exit_code == 2
    monkeypatch.setattr(program, "package", lambda: tmp_path)
    assert runner.invoke(commands.bench, ["gemm", "--case", "host"]).exit_code == 3


def test_failed_measurement_says_why():
    with pytest.raises(Error, match="no case|graphs are"):
        list(program.run(program.OURS, "tasks", "--case", "nonsense"))


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--devices", "nonsense"], MISUSED, "unknown device 'nonsense'"),
        (["--devices", "cpu:1", "--tile", "100000000"], MISUSED, "the tile size is 100000000"),
        (["--n", "100000000"], FAILED, "memory enough"),
    ],
)
def test_wrong_options_end_as_on_any_command_line(options, status, words, capsys):
    assert status_of(["bench", "gemm", "--case", "host", "--n", "50", *options]) == status
    assert words in capsys.readouterr().err


def test_devices_that_are_not_here_are_unavailable(capsys):
    if not quadriga._core.Machine.cuda_absence():
        pytest.skip("there is a GPU")
    options = ["--case", "host", "--n", "50", "--devices", "cuda"]
    assert status_of(["bench", "gemm", *options]) == UNAVAILABLE


def test_empty_tasks_run():
    line, *_ = program.run(program.OURS, "tasks", "--case", "chains", "--repeat", 1)
    assert line["case"] == "chains" and line["value"] > line["bound"] > 0


def test_malloc_counter_counts():
    (row,) = run_json("overhead", "--case", "malloc")
    assert row["calls_in_first_pass"] > 0, "the counter never counts"
    assert row["value"] < 0.1


@pytest.mark.parametrize("count", rows.DECIDING)
def test_decisions_are_measured_apart_from_the_backend(count):
    def measured(_):
        command = ("overhead", "--case", f"decide-{count}", "--tiles", "8", "--repeat", "1")
        (row,) = run_json(*command)
        assert 0 < row["submission"] < row["small"]
        assert row["backend_small"] > 0 and row["backend_large"] > 0
        assert 0 < row["seconds_small"] < row["seconds_large"]
        return row

    row = at_some_pace(measured, range(10))
    assert row["unit"] == "ns/task"
    assert (row["tasks_small"], row["tasks_large"]) == (8 * 9 * 10 / 6, 16 * 17 * 18 / 6)
    assert row["value"] == max(row["small"], row["large"])
    assert row["growth"] == pytest.approx(row["large"] / row["small"])


@pytest.mark.parametrize(
    ("value", "growth", "reached"),
    [(2999.0, 1.14, True), (2999.0, 1.16, False), (3001.0, 1, False)],
)
def test_decisions_may_not_grow_with_the_tasks(value, growth, reached):
    row = finish("overhead", case="decide-4", value=value, growth=growth)
    assert row["reached"] is reached and "8 times the tasks" in row["target"]


def test_products_by_the_virtual_clock():
    bytes_moved, makespan = run_json("gemm", "--case", "bytes-1", "--case", "makespan-1")
    assert (bytes_moved["case"], makespan["case"]) == ("bytes-1", "makespan-1")
    assert bytes_moved["bound"] == 8 and bytes_moved["value"] >= 8
    assert makespan["work"] == pytest.approx(4096 * 0.00695)
    assert makespan["value"] > makespan["bound"] == pytest.approx(4096 * 0.00695)


@pytest.mark.parametrize("operation", ["gemm", "potrf"])
def test_plans_of_orders_alike_are_alike_on_drawn_machines(operation):
    machine = Path(__file__).parents[2] / "machines" / "h200x4.json"
    words = ["--operation", operation, "--count", 12, "--machine", machine]
    *low, summary = program.run(program.OURS, "plans", *words)
    assert summary["case"] == f"{operation}-machines" and summary["of"] == 12
    assert summary["below_0.95"] == len(low) <= 6
    assert summary["median"] >= 0.93 and summary["value"] >= 0.6


def test_kernels_measure_products_and_short_sums_into_a_description(tmp_path):
    file = tmp_path / "machine.json"
    words = ["--devices", "emulated:1,memory=64MiB", "--repeat", "1", "--description", str(file)]
    rows = program.run(program.OURS, "kernels", *words)
    cases = [
        "emulated0-dgemm-256",
        "emulated0-dgemm-512",
        "emulated0-sums-256",
        "emulated0-sums-512",
    ]
    assert [row["case"] for row in rows] == cases
    machine = quadriga.Machine.from_file(str(file))
    described = json.loads(machine.to_json())
    assert described["devices"][0]["sums"]["512"] == 1
    assert described["kernels"]["dgemm"]["emulated"].keys() == {"256", "512"}


def test_rows_have_the_ten_keys_and_no_others():
    done = click.testing.CliRunner().invoke(commands.bench, ["gemm", "--case", "bytes-1", "--json"])
    (line,) = done.stdout.splitlines()
    assert tuple(json.loads(line)) == rows.KEYS


def test_cholesky_critical_path_is_that_of_the_diagonal():
    (row,) = run_json("potrf", "--case", "makespan-2")
    assert row["critical_path"] == pytest.approx(16 * 0.005965 + 15 * (0.005965 + 0.004295))
    assert row["work"] == pytest.approx(row["work_by_file"])


@pytest.mark.parametrize("benchmark", ["gemm", "potrf"])
def test_results_on_the_host_are_right(benchmark):
    words = ["--case", "host", "--n", "300", "--tile", "64", "--repeat", "1"]
    (row,) = run_json(benchmark, *words)
    assert row["tile"] == 64 and row["n"] == 300
    assert row["backward_error"] < 1e-15
    assert row["value"] > 0 and row["reference_value"] > 0 and row["reference"].startswith("Open")


def test_copies_keep_to_the_stated_rate():
    devices = "emulated:1,memory=1MiB,h2d=400MB/s,d2h=200MB/s"
    words = ["--devices", devices, "--repeat", "1", "--sizes", "4KiB,64KiB,1MiB"]
    found = {row["case"]: row for row in run_json("copies", *words)}
    assert found["h2d-emulated0-64KiB"]["bound"] == 4e8
    assert found["d2h-emulated0-64KiB"]["bound"] == 2e8
    assert "h2d-emulated0-1MiB" not in found, "more than a quarter of the memory"
    rates = [row for row in found.values() if row["value"]]
    by_runs = [row for row in rates if "run" in row]
    assert len(rates) == 2 * 5 + len(by_runs)
    # The larger size lies in half as many bytes, at least two runs of them.
    assert [row["run"] for row in by_runs] == 2 * [4096, 8192, 16384]
    assert {row["bytes"] for row in by_runs} == {32768}
    for row in rates:
        assert 0 < row["value"] < 1.1 * row["bound"]
    for kind in ("same", "peer", "peer-off", "all-h2d", "ipc"):
        assert found[kind]["value"] is None and found[kind]["left_out"]


def test_sizes_too_small_for_runs_are_said():
    words = ["--devices", "emulated:1", "--repeat", "1", "--sizes", "8KiB", "--case", "runs-d2h"]
    (row,) = run_json("copies", *words)
    assert row["value"] is None and "4KiB" in row["left_out"]


def machine_with_runs(tmp_path):
    path = tmp_path / "runs.json"
    device = {"name": "gpu0", "kind": "gpu", "memory": 8 << 20}
    links = {
        "down": {"bandwidth": 1e8, "runs": {"16384": 0.4, "65536": 1}},
        "up": {"bandwidth": 1e8},
    }
    routes = [
        {"from": "host", "to": "gpu0", "links": ["down"]},
        {"from": "gpu0", "to": "host", "links": ["up"]},
    ]
    machine = {"name": "runs", "devices": [device], "links": links, "routes": routes}
    path.write_text(json.dumps(machine))
    return f"machine={path}"


def test_short_runs_are_measured_and_described(tmp_path):
    target = tmp_path / "machine.json"
    words = ["--devices", machine_with_runs(tmp_path), "--sizes", "4KiB,2MiB", "-o", str(target)]
    cases = ("h2d", "d2h", "runs-h2d", "runs-d2h")
    rows = run_json("copies", *words, *(word for case in cases for word in ("--case", case)))
    by_runs = {row["case"]: row for row in rows if "run" in row}
    for run, share in ((4, 0.1), (8, 0.2), (16, 0.4), (32, 0.7), (64, 1), (128, 1), (256, 1)):
        row = by_runs[f"runs-h2d-gpu0-{run}KiB"]
        assert row["run"] == run << 10 and row["bytes"] == 1 << 20
        assert row["bound"] == pytest.approx(share * 1e8)
        assert row["reference"] == "one run"
        assert row["ratio"] == pytest.approx(row["value"] / row["reference_value"])
        assert by_runs[f"runs-d2h-gpu0-{run}KiB"]["bound"] == 1e8
    # Other programs take the two cores; a tenth and all of the link are far enough apart.
    slowest, fastest = (by_runs[f"runs-h2d-gpu0-{run}KiB"] for run in (4, 256))
    assert slowest["value"] < 0.5 * fastest["value"]
    links = {link.name: dict(link.runs) for link in Machine.from_file(target).links}
    assert links["gpu0 in"][4096] == pytest.approx(slowest["ratio"], abs=1e-3)
    assert links["gpu0 in"][max(links["gpu0 in"])] == 1
    assert links["gpu0 out"][4096] > links["gpu0 in"][4096]


def test_products_run_beside_runs_until_those_are_done():
    devices = "emulated:1,memory=16MiB,h2d=400MB/s"
    words = ["--kinds", "runs-h2d", "--devices", devices, "--sizes", "1MiB", "--repeat", 1]
    _, *rows = program.run(program.OURS, "copies", *words, "--products", "on")
    assert len(rows) == 7
    for row in rows:
        assert 0 < row["value"] < 1.1 * row["bound"]
    assert max(row["products"] for row in rows) > 0
    _, *rows = program.run(program.OURS, "copies", *words)
    assert all("products" not in row for row in rows), "on GPUs only"


def test_what_copies_measured_describes_the_machine(tmp_path):
    target = tmp_path / "machine.json"
    devices = "emulated:2,memory=4MiB,h2d=160MB/s,d2h=40MB/s,peer=10MB/s"
    words = ["--devices", devices, "--repeat", "5", "--sizes", "4KiB,1MiB", "-o", str(target)]
    run_json("copies", *words, "--case", "h2d", "--case", "d2h", "--case", "peer")
    rates = {
        (route.source, route.target): route.bytes_per_second
        for route in Machine.from_file(target).routes
    }
    # Rates four times apart: none is taken for another, though other programs take the cores.
    assert 5e7 < rates["host", "emulated1"] < 1.8e8
    assert 1.2e7 < rates["emulated0", "host"] < 4.5e7
    assert 3e6 < rates["emulated0", "emulated1"] < 1.2e7
    result = click.testing.CliRunner().invoke(
        commands.bench, ["copies", "--devices", devices, "--case", "d2h", "--quick", "-o", "x/y"]
    )
    assert result.exit_code == 1 and "x/y" in result.output


def test_table_shows_every_case(capsys):
    shown = [finish("overhead", case="gemm3", value=100.0, reference_value=700.0, reference="x")]
    table.show(shown, table.Console(width=200))
    text = capsys.readouterr().out
    assert "gemm3" in text and "✓" in text and "a processor" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0"), (6.55, "6.550"), (1234.5, "1,234"), (5e9, "5.000e+09")],
)
def test_numbers_for_people(value, text):
    assert table.number(value) == text
