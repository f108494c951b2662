# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_demo.py: the demo's data and model against definitions, and whole small runs.
import json

import numpy as np
import pytest

import quadriga
from quadriga import demo
from quadriga._demo import model as models
from quadriga._demo import picture, solver, study, terrain
from quadriga.cli.main import MISUSED, status_of

SMALL = {"points": 400, "devices": "emulated:2,memory=1MiB", "length_scale": 1100.0,
         "deviation": 140.0, "nugget": 20.0}  # fmt: skip
KNOWN = models.Model(length_scale=1100.0, variance=140.0**2, nugget=20.0)


def silent(phase, fraction):
    pass


def krige(setting, count, wanted=200, model=KNOWN, trace=None):
    """A run of the solver, and what it was given: points, heights and points wanted."""
    land = terrain.load()
    both = terrain.split(land.heights.size, count, seed=3)
    points, heights = land.points, land.heights.ravel()
    given = points[both.learned], heights[both.learned], points[both.held_out[:wanted]]
    return solver.krige(setting, model, *given, trace, silent), given


@pytest.fixture
def few_heights(monkeypatch):
    """A corner of the land, so that whole runs take a second."""
    whole = terrain.load()
    corner = terrain.Terrain(
        whole.heights[:200, :200].copy(), whole.metres_per_row, whole.metres_per_column
    )
    monkeypatch.setattr(terrain, "load", lambda: corner)
    return corner


# The data


def test_land_is_the_one_of_the_file():
    land = terrain.load()
    assert land.heights.shape == (344, 403)
    assert (land.heights.min(), land.heights.max()) == (236, 1076)
    # 3 arc seconds of an ellipsoid's meridian and parallel at 36.6 degrees: 92.5 and 74.5 m.
    assert land.metres_per_row == pytest.approx(92.5, rel=0.005)
    assert land.metres_per_column == pytest.approx(74.5, rel=0.005)


def test_points_lie_as_far_apart_as_cells():
    land = terrain.Terrain(np.zeros((3, 4)), 90.0, 70.0)
    assert land.points[:2].tolist() == [[0, 0], [70, 0]]
    assert land.points[4].tolist() == [0, 90]


def test_split_is_the_seeds_and_its_beginnings_are_random():
    one, same, other = (terrain.split(10_000, 1000, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.learned, same.learned)
    assert not np.array_equal(one.learned, other.learned)
    assert sorted([*one.learned, *one.held_out]) == list(range(10_000))
    assert 3000 < one.learned[:100].mean() < 7000


# The model


def test_covariance_is_its_definition():
    here, there = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]])
    s = np.sqrt(3) * 5 / 2
    expected = [[7.0], [7 * (1 + s) * np.exp(-s)]]
    assert models.Model(2.0, 7.0, 1.0).covariance(here, there) == pytest.approx(np.array(expected))


def test_reference_is_the_definition_of_kriging():
    random = np.random.default_rng(5)
    points, wanted = random.uniform(0, 5000, (40, 2)), random.uniform(0, 5000, (7, 2))
    heights = random.normal(500, 100, 40)
    matrix = KNOWN.covariance(points, points) + KNOWN.nugget * np.eye(40)
    weights = np.linalg.inv(matrix) @ (heights - heights.mean())
    expected = KNOWN.covariance(wanted, points) @ weights + heights.mean()
    assert models.reference(KNOWN, points, heights, wanted) == pytest.approx(expected, abs=1e-8)


def test_likelihood_finds_the_model_that_made_the_heights():
    random = np.random.default_rng(9)
    points = random.uniform(0, 12_000, (1500, 2))
    made = models.Model(900.0, 120.0**2, 25.0)
    matrix = made.covariance(points, points) + made.nugget * np.eye(len(points))
    heights = 500 + np.linalg.cholesky(matrix) @ random.normal(size=len(points))
    found = models.fit(points, heights, seed=1)
    assert found.length_scale == pytest.approx(made.length_scale, rel=0.35)
    assert found.variance**0.5 == pytest.approx(made.variance**0.5, rel=0.35)
    assert found.nugget**0.5 == pytest.approx(made.nugget**0.5, rel=0.5)


def test_what_is_given_replaces_what_was_found():
    found = models.Model(900.0, 100.0, 4.0, "likelihood")
    given = found.replaced(None, 20.0, 9.0)
    assert (given.length_scale, given.variance, given.nugget) == (900.0, 400.0, 9.0)
    assert given.origin == "likelihood; given: variance, nugget"
    assert found.replaced(None, None, None) == found


# The work on devices


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB", "emulated:3,memory=2MiB"])
def test_devices_predict_as_scipy(devices):
    run, (points, heights, wanted) = krige(solver.Setting(devices), 500)
    expected = models.reference(KNOWN, points, heights, wanted)
    assert np.abs(run.predicted - expected).max() / heights.std() < 1e-10
    assert 0 < run.backward_error < 1e-15


def test_tiles_that_fit_nowhere_go_to_the_file(tmp_path):
    file = tmp_path / "tiles"
    spilled, given = krige(solver.Setting("emulated:2,memory=1MiB", spill=file, tile=64), 700)
    inside, _ = krige(solver.Setting("emulated:2,memory=64MiB", tile=64), 700)
    assert spilled.counters.spill_bytes > 0
    assert np.array_equal(spilled.predicted, inside.predicted)


def test_backward_error_sees_a_wrong_solution():
    land = terrain.load()
    points, right = land.points[::700], land.heights.ravel()[::700] - 400
    with quadriga.Engine("cpu:2") as engine:
        work = solver._Work(engine, None, KNOWN, silent)
        solution = work.factorize(points).solve(right)
        assert work.backward_error(points, solution, right) < 1e-15
        worse = solution.copy()
        worse[7] *= 1 + 1e-9
        assert work.backward_error(points, worse, right) > 1e-14


# Whole runs


def test_sizes_double_and_include_one_for_scipy():
    for points in (100, 999, 2000, 2001, 8000, 137_632):
        found = demo.sizes(points)
        assert found[-1] == points and found == sorted(set(found))
        assert found[0] <= demo.REFERENCE_POINTS
        assert all(1.2 * a <= b <= 2.4 * a + 3 for a, b in zip(found, found[1:], strict=False))


def test_demo_accepts_itself_and_writes_its_files(few_heights, tmp_path, capsys):
    assert demo.run(demo.Options(**SMALL, output=tmp_path / "new")) == 0
    said = capsys.readouterr().out
    assert "Accepted" in said and "host to emulated0" in said and "39,600 held out" in said
    assert "<svg" in (tmp_path / "new" / "report.html").read_text()
    assert (tmp_path / "new" / "kriging.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_json_is_one_object_that_tells_all(few_heights, tmp_path, capsys):
    assert demo.run(demo.Options(**SMALL, output=tmp_path, json=True)) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["accepted"] and all(check["passed"] for check in told["checks"])
    assert [run["points"] for run in told["runs"]] == [100, 200, 400]
    errors = [run["rmse"] for run in told["runs"]]
    assert errors == sorted(errors, reverse=True) and errors[0] < few_heights.heights.std()
    assert told["runs"][-1]["counters"]["spill_bytes"] >= 0


def test_a_prediction_unlike_scipys_is_not_accepted(few_heights, tmp_path, capsys, monkeypatch):
    exact = models.reference
    monkeypatch.setattr(models, "reference", lambda *given: exact(*given) + 1e-4)
    assert demo.run(demo.Options(**SMALL, output=tmp_path)) == 1
    said = capsys.readouterr().out
    assert "FAILED" in said and "Not accepted: largest difference from SciPy" in said


def test_a_residual_that_is_no_number_is_not_accepted():
    assert not study.Check("backward error", float("nan"), 1e-14).passed
    assert study.Check("backward error", 1e-14, 1e-14).passed


def test_more_than_fits_is_refused_with_the_figures(few_heights, tmp_path, capsys):
    options = {**SMALL, "points": 2000}
    with quadriga.config(host_memory="2MiB"):
        assert demo.run(demo.Options(**options, output=tmp_path)) == 1
    said = capsys.readouterr().out
    assert "2,000 points are refused: the factor needs 15.3 MiB" in said and "2 MiB" in said


@pytest.mark.parametrize("points", [99, 39_001])
def test_points_out_of_range(few_heights, tmp_path, points):
    with pytest.raises(quadriga.InvalidArgument, match="expected 100 to 39000"):
        demo.run(demo.Options(points=points, output=tmp_path))


def test_all_points_are_those_that_need_not_be_held_out(few_heights, tmp_path, capsys):
    with quadriga.config(host_memory="2MiB"):
        assert status_of(["demo", "--points", "all", "-o", str(tmp_path), "--json",
                          "--devices", "emulated:1,memory=1MiB"]) == 1  # fmt: skip
    assert json.loads(capsys.readouterr().out)["points"] == 39_000
    assert status_of(["demo", "--points", "some"]) == MISUSED
    with pytest.raises(quadriga.InvalidArgument, match="'some' points.*'all'"):
        demo.run(demo.Options(points="some", output=tmp_path))


def test_rate_counts_factor_and_solve():
    counters = quadriga.Engine("cpu:1").counters()
    run = solver.Run(
        300, np.zeros(1), 0.0, {"factor": 2.0, "solve": 1.0, "check": 9.0}, 64, counters
    )
    assert run.flops_per_second == pytest.approx((300**3 / 3 + 2 * 300**2) / 3)


@pytest.mark.parametrize("devices", ["cpu", "emulated:1,memory=16MiB"])
def test_trying_the_fit_makes_no_devices(devices):
    solver.check_fit(solver.Setting(devices), 1500)


def test_quick_is_small():
    assert demo.Options(quick=True).points == 2000
    assert demo.Options(quick=True).devices == "emulated:2,memory=8MiB"
    assert demo.Options().devices == "emulated:2,memory=128MiB"


def test_picture_shows_at_most_three_close_ups():
    results = [picture.Result(n, 1.0, np.zeros((2, 2))) for n in (1, 2, 4, 8, 16)]
    assert [each.points for each in picture._few(results)] == [1, 4, 16]
    assert [each.points for each in picture._few(results[:1])] == [1]
