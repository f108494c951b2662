# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sparse_exchange.py: ways to exchange, what is predicted of them and reached.
import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import click.testing
import numpy as np
import pytest
import scipy.sparse as sp

import quadriga
from quadriga import sparse
from quadriga.cli.main import cli
from quadriga.errors import InvalidArgument, Unavailable
from quadriga.sparse.matrices import as_csr
from quadriga.sparse.ordering import lost_seconds, seconds_to_order
from quadriga.sparse.overlap import overlap_reached

P100 = "machines/p100x2.json"
# Of Serena, SuiteSparse's matrix of the paper.
ELEMENTS_PER_ROW = 64131971 / 1391349


def band(n):
    """As many elements in a row as Serena has; positive definite."""
    random = np.random.default_rng(1)
    ones = [np.ones(n - step) for step in range(1, 24)]
    ones[-1] = (random.random(n - 23) < (ELEMENTS_PER_ROW - 45) / 2).astype(float)
    upper = sp.diags_array([-each for each in ones], offsets=range(1, 24), shape=(n, n)).tocsr()
    upper.eliminate_zeros()
    a = upper + upper.T
    return (a + sp.diags_array(0.5 - a.sum(axis=0))).tocsr()


@pytest.mark.parametrize("devices", ["emulated:3", "emulated:2,peer=4GB/s", "cpu:2"])
def test_every_way_to_exchange_gives_the_same_bits(devices):
    a = sparse.poisson((14, 13, 12), 27)
    b = np.random.default_rng(1).standard_normal((a.shape[0], 2))
    expected = sparse.Solver(a, M="jacobi", devices="emulated:1").solve(b, rtol=1e-9)
    with quadriga.Engine(devices) as engine:
        for way in itertools.product(("halo", "whole"), ("direct", "host"), (False, True)):
            words = dict(zip(("exchange", "route", "overlap"), way, strict=True))
            solver = sparse.Solver(a, M="jacobi", engine=engine, **words)
            result = solver.solve(b, rtol=1e-9)
            assert result.x.tobytes() == expected.x.tobytes(), way
            assert result.iterations == expected.iterations
            assert (solver @ b).tobytes() == (sparse.Solver(a, engine=engine) @ b).tobytes()


def test_the_papers_machine_has_the_papers_gain():
    solver = sparse.Solver(band(20000), format="csr", devices=f"machine={P100}")
    found = {(way["exchange"], way["route"]): way for way in solver.estimate()}
    assert len(found) == 4
    # Hahnfeld et al.: up to 46.91 %, with whole vectors by way of the host.
    assert found["whole", "host"]["largest_gain"] == pytest.approx(0.4691, abs=0.002)
    assert found["whole", "direct"]["largest_gain"] == pytest.approx(0.136, abs=0.002)
    assert found["halo", "host"]["largest_gain"] < 0.01
    for way in found.values():
        for part in way["parts"]:
            assert part["in_turn_seconds"] == part["compute_seconds"] + part["exchange_seconds"]


@pytest.mark.parametrize("route", ["host", "direct"])
@pytest.mark.parametrize("exchange", ["halo", "whole"])
def test_the_predicted_gain_is_reached_by_the_virtual_clock(exchange, route):
    with quadriga.Engine(f"machine={P100}", virtual_clock=True) as engine:
        solver = sparse.Solver(
            band(60000), format="csr", exchange=exchange, route=route, engine=engine
        )
        reached = solver.measure_overlap()
        (said,) = [
            way for way in solver.estimate() if (way["exchange"], way["route"]) == (exchange, route)
        ]
    assert reached["in_turn_seconds"] == pytest.approx(said["in_turn_seconds"], rel=0.1)
    assert reached["overlapped_seconds"] == pytest.approx(said["overlapped_seconds"], rel=0.1)
    if exchange == "whole":
        assert reached["gain"] >= 0.9 * said["largest_gain"]


def test_what_does_not_fit_is_said_and_takes_no_less(tmp_path):
    memory = 900 * 1024
    described = json.loads(Path(P100).read_text())
    for device in described["devices"]:
        device["memory"] = memory
    (tmp_path / "small.json").write_text(json.dumps(described))
    a = sparse.poisson((20, 20, 20), 27)
    with quadriga.Engine(f"machine={tmp_path / 'small.json'}", virtual_clock=True) as engine:
        solver = sparse.Solver(a, engine=engine)
        plan = solver.plan
        taken = solver.measure_product(10)
    over = sum(plan["bytes"]) - 2 * memory
    assert over < plan["streamed_bytes"] < over + 6 * 8 * a.shape[0]
    seconds = plan["streamed_bytes"] / 2 / 13.2e9
    assert plan["streamed_seconds"] == pytest.approx(seconds, rel=0.1)
    # Vectors that are written go home, too; a product has fewer of them than an iteration.
    assert over / 2 / 13.2e9 < taken < 4 * sum(plan["bytes"]) / 2 / 13.2e9
    with quadriga.Engine("emulated:2") as engine:
        plan = sparse.Solver(a, engine=engine).plan
        assert plan["streamed_bytes"] == plan["streamed_seconds"] == 0


def streamed_machine(tmp_path, memory):
    described = json.loads(Path(P100).read_text())
    del described["devices"][1:]
    described["devices"][0]["memory"] = memory
    of_one = [each for each in described["routes"] if "gpu1" not in (each["from"], each["to"])]
    described["routes"] = of_one
    (tmp_path / "one.json").write_text(json.dumps(described))
    return f"machine={tmp_path / 'one.json'}"


def test_a_matrix_that_does_not_fit_passes_once_an_iteration(tmp_path):
    a = sparse.poisson((24, 24, 24), 27)
    with quadriga.Engine("emulated:1") as engine:
        bytes_of_all = sum(sparse.Solver(a, engine=engine).plan["bytes"])
    devices = streamed_machine(tmp_path, bytes_of_all // 4)
    with quadriga.Engine(devices, virtual_clock=True) as engine:
        solver = sparse.Solver(a, M="jacobi", engine=engine)
        assert solver.plan["streamed_bytes"] > 0
        before = {(each.source, each.target): each.bytes for each in engine.counters().links}
        result = solver.solve(np.ones(a.shape[0]), rtol=0, maxiter=20)
        came = sum(
            each.bytes - before.get((each.source, each.target), 0)
            for each in engine.counters().links
            if each.source == 0
        )
    # Checks of the residual read it, too: before the iterations and behind them.
    passes = result.iterations + 2
    assert came < 1.5 * passes * bytes_of_all


@pytest.mark.parametrize("m", [None, "jacobi", "block_jacobi", "chebyshev"])
def test_matrices_that_do_not_fit_give_the_bits_of_those_that_do(tmp_path, m):
    a = sparse.poisson((10, 10, 20))
    b = np.random.default_rng(1).standard_normal((a.shape[0], 2))
    with quadriga.Engine("emulated:1") as engine:
        bytes_of_all = sum(sparse.Solver(a, engine=engine).plan["bytes"])
    with (
        quadriga.Engine("emulated:1") as large,
        quadriga.Engine(streamed_machine(tmp_path, 3 * bytes_of_all // 4)) as small,
    ):
        solvers = [sparse.Solver(a, M=m, engine=each) for each in (large, small)]
        assert solvers[1].plan["streamed_bytes"] > 0
        for factor in (1, 3):
            for each in solvers:
                each.update(factor * a)
            one, other = (each.solve(b, rtol=1e-9) for each in solvers)
            assert (one.x == other.x).all() and one.iterations == other.iterations
            assert one.reason == "converged"


def test_results_tell_the_overlap_that_was_reached():
    a = band(60000)
    ways = {}
    with quadriga.Engine(f"machine={P100}") as engine:
        for overlap in (False, True):
            solver = sparse.Solver(
                a, exchange="whole", overlap=overlap, recorded=False, engine=engine
            )
            ways[overlap] = solver.solve(np.ones(60000), maxiter=10).overlap
    assert 0 <= ways[False] <= 1 and 0 <= ways[True] <= 1
    for devices in ("cpu:2", "emulated:1"):
        assert sparse.Solver(a, devices=devices).solve(np.ones(60000), maxiter=2).overlap is None


def test_overlap_is_the_share_of_what_was_possible():
    def devices(*seconds):
        names = ("copying_seconds", "computing_seconds", "overlap_seconds")
        return [SimpleNamespace(**dict(zip(names, each, strict=True))) for each in seconds]

    before = devices((1, 1, 1), (0, 0, 0))
    assert overlap_reached(before, devices((3, 5, 2), (4, 1, 0.5))) == 1.5 / 3
    assert overlap_reached(before, devices((1, 5, 1), (0, 1, 0))) is None, "nothing was copied"
    assert overlap_reached(before, devices((0, 0, 0), (0, 0, 0))) is None, "counters were reset"
    assert overlap_reached([], []) is None


def test_nothing_is_predicted_without_rates():
    with pytest.raises(Unavailable, match="rates 'flops' and 'bytes'"):
        sparse.Solver(band(100), devices="emulated:2").estimate()


@pytest.mark.parametrize("name", ["exchange", "route", "format"])
def test_unknown_ways_are_refused(name):
    with pytest.raises(InvalidArgument, match=f"{name} is 'x'; expected one of"):
        sparse.Solver(band(100), **{name: "x"})


def test_the_command_tells_what_is_predicted_and_reached(tmp_path):
    a = band(5000)
    sp.save_npz(tmp_path / "a.npz", a)
    np.save(tmp_path / "b.npy", np.ones(5000))
    words = ["cg", str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "x.npy")]
    words += ["--estimate", "--format", "csr", "--devices", f"machine={P100}"]
    shown = click.testing.CliRunner().invoke(cli, words)
    assert shown.exit_code == 0, shown.output
    assert "whole vector by way of the host: up to 46.8 % by overlap" in shown.output
    assert "reached" in shown.output
    found = json.loads(click.testing.CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert 0 <= found["overlap_reached"] <= 1
    assert [way["exchange"] for way in found["estimates"]] == ["halo", "halo", "whole", "whole"]
    assert found["overlap"]["in_turn_seconds"] > 0


def shuffled(a):
    places = np.random.default_rng(2).permutation(a.shape[0])
    return a[places][:, places].tocsr()


def test_rows_are_reordered_where_that_is_predicted_to_pay(monkeypatch):
    monkeypatch.setattr("quadriga.sparse.solver.seconds_to_order", lambda *given: 1e-4)
    monkeypatch.setattr("quadriga.sparse.solver._PRODUCTS", 10**8)
    a, b = band(20000), np.random.default_rng(3).standard_normal(20000)
    mixed = shuffled(a)
    with quadriga.Engine(f"machine={P100}", virtual_clock=True) as engine:
        plans = {
            (name, order): sparse.Solver(matrix, order=order, engine=engine).plan
            for name, matrix in (("band", a), ("mixed", mixed))
            for order in (None, "auto")
        }
        assert not plans["band", "auto"]["ordered"], "a band has next to nothing to gain"
        assert plans["mixed", "auto"]["ordered"]
        assert sum(plans["mixed", None]["halo_rows"]) > 15000
        assert sum(plans["mixed", "auto"]["halo_rows"]) < 1000
        result = sparse.Solver(mixed, M="jacobi", order="auto", engine=engine).solve(b, rtol=1e-9)
        assert np.linalg.norm(b - mixed @ result.x) <= 1.01e-9 * np.linalg.norm(b)
        monkeypatch.setattr("quadriga.sparse.solver.seconds_to_order", lambda *given: 1e6)
        assert not sparse.Solver(mixed, order="auto", engine=engine).plan["ordered"]


def test_whether_rows_are_reordered_follows_from_the_description(monkeypatch):
    a = shuffled(band(5000))
    with quadriga.Engine(f"machine={P100}", virtual_clock=True) as engine:
        stored = a.data.nbytes + a.indices.nbytes + a.indptr.nbytes
        limit = (2 * 64 * a.nnz + 2 * stored) / 13.2e9  # bytes by the rate of the host's links
        lost = lost_seconds(sparse.Solver(a, engine=engine).plan)
        for share, ordered in ((0.99, False), (1.01, True)):
            monkeypatch.setattr("quadriga.sparse.solver._PRODUCTS", share * limit / lost)
            for _ in range(3):
                assert sparse.Solver(a, order="auto", engine=engine).plan["ordered"] is ordered


def test_fast_links_dont_make_cores_fast():
    machines = Path(P100).parent
    matrix = as_csr(band(5000))
    (small, large), slow = (
        [seconds_to_order(matrix, quadriga.Machine.from_file(machines / name)) for name in names]
        for names in (("h200x4.json", "h200x8.json"), ("p100x2.json",))
    )
    moved = 2 * 64 * matrix.values.size + 2 * (matrix.values.nbytes + matrix.columns.nbytes)
    moved += 2 * matrix.offsets.nbytes
    assert small == pytest.approx(moved / (205e9 / 64))  # one of 64 cores' share of host-memory
    assert large == pytest.approx(moved / (205e9 / 128))
    assert slow == [pytest.approx(moved / 13.2e9)]  # neither cores nor memory are described


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2", f"machine={P100}:1"])
def test_rows_stay_in_order_where_nothing_is_predicted(devices):
    solver = sparse.Solver(shuffled(band(2000)), order="auto", devices=devices)
    assert solver.plan["ordered"] is False


def test_an_order_that_is_no_better_is_left_out(monkeypatch):
    monkeypatch.setattr("quadriga.sparse.solver.seconds_to_order", lambda *given: 0.0)
    monkeypatch.setattr("quadriga.sparse.solver._PRODUCTS", 10**8)
    a, b = band(3000), np.ones(3000)
    solver = sparse.Solver(a, order="auto", devices=f"machine={P100}")
    plain = sparse.Solver(a, devices=f"machine={P100}")
    assert solver.plan["ordered"] is False
    assert (solver @ b == plain @ b).all()
