# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_bench_papers.py: figures of papers, redone on descriptions of their machines.
"""What `quadriga bench papers` simulates and shows."""

import json

import pytest
from click.testing import CliRunner

from quadriga.bench import program
from quadriga.bench.papers.command import papers
from quadriga.bench.papers.experiments import EXPERIMENTS, POLICIES, Experiment, Point
from quadriga.bench.papers.page import page
from quadriga.bench.papers.published import PUBLISHED
from quadriga.bench.papers.reached import reached
from quadriga.bench.papers.running import run

pytestmark = pytest.mark.skipif(not program.built(program.OURS), reason="QUADRIGA_BENCH is off")


def _rows(*words):
    outcome = CliRunner().invoke(papers, [*words, "--quick", "--json"])
    assert outcome.exit_code == 0, outcome.output
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def _simulated(**words):
    machine = program.package() / "machines" / "papers" / "bunsen.json"
    given = {"machine": machine, "operation": "potrf", "n": 8192} | words
    flat = [part for key, value in given.items() for part in (f"--{key}", value)]
    (row,) = program.run(program.OURS, "papers", *flat)
    return row


def test_one_gpu_moves_what_must_cross_once_and_computes_at_the_rate_that_is_stated():
    rows = _rows("--figure", "lima-7", "--figure", "lima-I")
    assert [row["policy"] for row in rows[::3]] == [*POLICIES, *POLICIES]
    alone = [row for row in rows if row["x"] == 1]
    assert {row["host_bytes"] for row in alone} == {4 * 8192**2 * 8}
    for row in alone:
        least, most = (2, 2) if row["figure"] == "lima-I" else (0.95 * 309, 309)
        assert least <= row["value"] <= most


@pytest.mark.parametrize("devices", [5, 6, 7, 8])
def test_the_default_is_near_the_best_policy_of_a_product_on_any_number_of_gpus(devices):
    machine = program.package() / "machines" / "papers" / "idgraf.json"
    words = {"machine": machine, "operation": "gemm", "n": 16384, "tile": 1024, "cores": 0}
    policies = ("", "steal", "earliest-finish", "weight", "data-first")
    rates = {each: _simulated(**words, devices=devices, policy=each) for each in policies}
    assert rates[""]["value"] >= 0.97 * max(row["value"] for row in rates.values())


def test_divided_tasks_are_faster_than_flat_ones_where_tiles_are_large():
    flat, divided = (_simulated(tile=1024, fine=fine)["value"] for fine in (0, 128))
    assert divided > 1.5 * flat


def test_kernels_without_a_time_on_gpus_run_on_cores():
    # One tile: its factorization is all there is, at 10 GFLOP/s of a core.
    assert _simulated(n=1024, tile=1024)["value"] == pytest.approx(10, rel=0.01)
    assert _simulated(n=1024, tile=1024)["host_bytes"] == 0


def test_tiles_are_the_best_of_those_that_are_tried():
    point = Point("flat", 8192, {"machine": "bunsen", "n": 8192, "tile": 0}, (512, 1024))
    tried = Experiment("tried", "", "", "", "order", lambda quick: [point])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EXPERIMENTS, "tried", tried)
        rows = list(run(("tried",), True, lambda done: None))
    values = [_simulated(tile=tile, policy="steal")["value"] for tile in point.tiles]
    assert rows[0]["policy"] == "steal"
    assert rows[0]["value"] == max(values) > min(values)
    assert rows[0]["tile"] == point.tiles[values.index(max(values))]


def test_smaller_tiles_are_tried_until_one_is_slower(monkeypatch):
    rates = {192: 9, 384: 5, 576: 7, 768: 6}
    tried = []

    def simulated(words, policy):
        tried.append(words["tile"])
        row = {"value": rates[words["tile"]], "n": words["n"]}
        return row | {"seconds": 1.0, "host_bytes": 0, "tasks": 1}

    point = Point("flat", 8192, {"machine": "bunsen", "n": 8192, "tile": 0}, tuple(rates))
    monkeypatch.setattr("quadriga.bench.papers.running._simulated", simulated)
    monkeypatch.setattr("quadriga.bench.papers.experiments.POLICIES", ("default",))
    monkeypatch.setitem(EXPERIMENTS, "t", Experiment("t", "", "", "", "n", lambda quick: [point]))
    (row,) = run(("t",), True, lambda done: None)
    assert tried == [768, 576, 384] and (row["tile"], row["value"]) == (576, 7)


def test_what_a_file_keeps_is_not_simulated_again(tmp_path, monkeypatch):
    file, parts = tmp_path / "runs.jsonl", []
    words = ("--figure", "lima-8", "--resume", str(file))
    first = _rows(*words)
    kept = file.read_text()
    assert kept.count("\n") == len(first) == 9
    # What an interrupted run leaves: lines that are missing, and one that is unfinished.
    file.write_text(kept[: len(kept) // 2])
    assert _rows(*words) == first
    assert len(file.read_text()) > len(kept)
    with monkeypatch.context() as patch:
        patch.setattr(program, "run", lambda *words: pytest.fail(f"simulated: {words}"))
        assert list(run(("lima-8",), True, parts.append, file)) == first
    assert parts == sorted(parts) and parts[-1] == 1
    # Another program may say something else.
    (tmp_path / "bin").mkdir()
    machines = program.package() / "machines"
    (tmp_path / "machines").symlink_to(machines)
    (tmp_path / "bin" / program.OURS).write_text("#!/bin/sh\necho another >&2; exit 2\n")
    (tmp_path / "bin" / program.OURS).chmod(0o755)
    monkeypatch.setattr(program, "package", lambda: tmp_path)
    with pytest.raises(ValueError, match="another"):
        list(run(("lima-8",), True, parts.append, file))


def test_tiles_of_a_figure_are_multiples_of_the_fine_ones():
    for experiment in EXPERIMENTS.values():
        for point in (*experiment.points(True), *experiment.points(False)):
            for words in point.runs:
                assert not words.get("fine") or words["tile"] % words["fine"] == 0


def test_numbers_of_the_papers_belong_to_figures_that_are_redone():
    assert {each.figure for each in PUBLISHED} <= set(EXPERIMENTS)


def test_the_page_shows_a_plot_and_the_papers_numbers(tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "papers.html"
    outcome = CliRunner().invoke(papers, ["--figure", "lima-6", "--quick", "--page", str(file)])
    assert outcome.exit_code == 0, outcome.output
    text = file.read_text()
    assert text.count("<svg") == 1 and "states no number" in text
    assert "DPOTRF runs on cores only" in text, "what the descriptions assume"


def test_no_curve_of_the_page_leaves_its_panel(monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")
    drawn = []
    save = figure.Figure.savefig
    monkeypatch.setattr(
        figure.Figure, "savefig", lambda self, *a, **k: (drawn.append(self), save(self, *a, **k))[1]
    )
    rows = [
        {"figure": "wu-3.8", "line": "flat", "policy": policy, "x": 1.0, "value": 10.0**power}
        for power, policy in enumerate(POLICIES)
    ]
    page(rows, program.package() / "machines" / "papers")
    (plot,) = drawn
    for axes in plot.axes:
        bottom, top = axes.get_ylim()
        assert bottom == 0 and top >= 10.0 ** (len(POLICIES) - 1)


def _curves(figure, lines, policies=POLICIES):
    """Rows of lines, which are rates by place."""
    return [
        {"figure": figure, "line": line, "policy": policy, "x": x, "value": rate}
        for policy in policies
        for line, rates in lines.items()
        for x, rate in rates.items()
    ]


def test_all_tiles_of_the_range_are_compared_by_any_fine_size():
    lines = {
        "flat": {576: 100.0, 1152: 100.0},
        "b = 128": {512: 1.0, 640: 80.0, 1152: 70.0, 1280: 1.0},
        "b = 192": {576: 90.0, 1152: 85.0, 1344: 1.0},
    }
    (found,) = reached(_curves("wu-3.9-48K", lines, ("steal",)))
    assert (found.value, found.least, found.where) == (0.7, 0.9, "b = 128, B = 1152")


def test_divided_tasks_are_compared_by_the_best_rates_on_as_many_gpus():
    lines = {
        "flat, 1 GPUs": {8192: 900.0, 16384: 1000.0},
        "divided, 1 GPUs": {8192: 1200.0, 16384: 1150.0},
        "flat, 3 GPUs": {16384: 3000.0},
        "divided, 3 GPUs": {16384: 3196.0},
    }
    share, all_together = reached(_curves("wu-3.10", lines, ("steal",)))
    assert (share.value, share.where) == (pytest.approx(3196 / 3000), "divided, 3 GPUs")
    assert (all_together.value, all_together.least) == (pytest.approx(0.85), 0.98)


def test_the_default_is_compared_where_it_is_furthest_behind():
    rows = _curves("lima-7", {"blocks of 1024": {1: 300.0, 2: 600.0}})
    for row in rows:
        row["value"] *= 0.9 if (row["policy"], row["x"]) == ("default", 2) else 1
    (found,) = reached(rows)
    assert (found.value, found.where) == (pytest.approx(0.9), "blocks of 1024, 2 GPUs")
    text = page(rows, program.package() / "machines" / "papers")
    assert "<td>0.900</td><td>0.97</td>" in text and "font-weight: bold" in text


@pytest.mark.parametrize(
    "words, said",
    [
        ({"tile": 1000, "fine": 192}, "--fine 192: doesn't divide --tile 1000"),
        ({"tile": 1024, "fine": 128, "cores": 0}, "has no cores"),
        ({"tile": 9000}, "--n is less than a tile of 9000"),
        ({"operation": "qr"}, "expected gemm or potrf"),
    ],
)
def test_what_is_wrong_is_named(words, said):
    with pytest.raises(ValueError, match=said):
        _simulated(**words)
