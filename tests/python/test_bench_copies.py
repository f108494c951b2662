# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_bench_copies.py: matrices of copies, and machines described by what was
# measured.
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import quadriga
from quadriga.bench import matrix, measure
from quadriga.bench.description import describe
from quadriga.bench.rows import finish
from quadriga.errors import InvalidArgument
from quadriga.machine import Machine

MACHINES = Path(__file__).parents[2] / "machines"
HOST = {"cpu": "a processor", "cores": 2}


def by_runs(kind, source, target, shares, whole=50e9):
    """Copies by runs, beside copies of one run, which reach less than copies alone."""
    return [
        row(
            f"runs-{kind}",
            source,
            target,
            share * whole,
            1 << 26,
            run=run,
            reference="one run",
            reference_value=whole,
        )
        for run, share in shares.items()
    ]


def row(kind, source, target, value, size=1 << 30, **more):
    return {
        "case": kind,
        "kind": kind,
        "from": source,
        "to": target,
        "bytes": size,
        "value": value,
        "unit": "bytes/s",
        "bound": None,
        **more,
    }


def measured(gpus, peers=396e9, **alls):
    """Four H200s as they were measured, or fewer."""
    names = [f"gpu{i}" for i in range(gpus)]
    rows = []
    for name in names:
        rows += [
            row("h2d", "host", name, 55.6e9),
            row("h2d", "host", name, 2.9e9, 4096),
            row("d2h", name, "host", 55.4e9),
            row("both", "host", name, 102e9),
        ]
        rows += [row("peer", name, other, peers) for other in names if other != name]
    return rows + [row(kind.replace("_", "-"), "all", "all", rate) for kind, rate in alls.items()]


def found(gpus):
    whole = json.loads(Machine.from_file(MACHINES / "h200x4.json").to_json())
    names = ["host"] + [f"gpu{i}" for i in range(gpus)]
    whole["devices"] = [each for each in whole["devices"] if each["name"] in names]
    whole["routes"] = [r for r in whole["routes"] if r["from"] in names and r["to"] in names]
    return whole


def described(gpus, rows):
    return Machine.from_json(json.dumps(describe(found(gpus), rows, "measured")))


def rates(machine):
    return {(route.source, route.target): route.bytes_per_second for route in machine.routes}


def test_rates_and_latencies_are_those_measured():
    machine = described(2, measured(2))
    assert rates(machine)["host", "gpu0"] == 55.6e9
    assert rates(machine)["gpu1", "host"] == 55.4e9
    assert rates(machine)["gpu0", "gpu1"] == 396e9
    links = {link.name: link for link in machine.links}
    assert links["gpu0 in"].latency_seconds == pytest.approx(4096 / 2.9e9 - 4096 / 55.6e9)
    assert links["gpu0 both"].bytes_per_second == 102e9
    assert links["gpu0 out"].latency_seconds == 0  # One size tells no latency.
    (route,) = (r for r in machine.routes if (r.source, r.target) == ("gpu0", "gpu1"))
    assert route.nvlinks == 18, "what discovery read stays"


def test_links_say_what_short_runs_reach():
    start = found(1)
    start["links"]["pcie0 up"]["runs"] = {"8192": 0.59, "65536": 1}
    machine = Machine.from_json(json.dumps(start))
    links = {link.name: link for link in machine.links}
    assert links["pcie0 up"].runs == ((8192, 0.59), (65536, 1))
    assert links["nvlink0 in"].runs == ()
    assert json.loads(machine.to_json())["links"]["pcie0 up"]["runs"] == {"8192": 0.59, "65536": 1}


def runs_of(rows, gpus=1):
    return {link.name: dict(link.runs) for link in described(gpus, rows).links}


def test_what_short_runs_reach_is_measured_to_where_nothing_is_lost():
    start = measured(1)
    shares = {65536: 0.985, 8192: 0.5912, 32768: 0.86, 131072: 1.01, 16384: 0.6}
    down = runs_of([*start, *by_runs("h2d", "host", "gpu0", shares)])
    assert down["gpu0 in"] == {8192: 0.591, 16384: 0.6, 32768: 0.86, 65536: 1}
    dip = {4096: 0.99, 8192: 0.7, 16384: 1.2, 32768: 0.9}
    up = runs_of([*start, *by_runs("d2h", "gpu0", "host", dip)])
    assert up["gpu0 out"] == {4096: 0.99, 8192: 0.7, 16384: 1, 32768: 0.9, 65536: 1}
    none = runs_of([*start, *by_runs("h2d", "host", "gpu0", {4096: 0.98, 8192: 1.0})])
    assert none["gpu0 in"] == {4096: 1}, "measured, and nothing is lost"
    assert rates(described(1, [*start, *by_runs("h2d", "host", "gpu0", shares)]))[
        "host", "gpu0"
    ] == (55.6e9)


def test_what_short_runs_reach_stays_if_it_was_not_measured():
    rows = [*measured(2), *by_runs("h2d", "host", "gpu1", {8192: 0.5, 16384: 1})]
    supposed = {8192: 0.59, 16384: 0.59, 65536: 1}
    links = runs_of(rows, 2)
    assert links["gpu1 in"] == {8192: 0.5, 16384: 1}
    assert links["gpu0 in"] == links["gpu0 out"] == links["gpu1 out"] == supposed
    assert links["gpu0 peer out"] == {}


def test_devices_and_kernel_times_stay():
    machine = json.loads(described(2, measured(2)).to_json())
    assert machine["kernels"] == found(2)["kernels"]
    assert [each["model"] for each in machine["devices"]] == ["NVIDIA H200"] * 2


def test_what_all_share_at_once_is_a_link_of_the_host():
    rows = measured(4, all_h2d=208e9, all_d2h=157e9, all_both=200e9)
    machine = described(4, rows)
    links = {link.name: link.bytes_per_second for link in machine.links}
    assert links["host-memory"] == 208e9
    assert "host-read" not in links, "the same limit once more"
    assert links["host-write"] == 157e9
    crossed = {(r.source, r.target): r.links for r in machine.routes}
    assert {"host-memory", "host-write"} <= set(crossed["gpu2", "host"])
    assert "host-write" not in crossed["host", "gpu2"]
    slow = described(4, measured(4, all_h2d=100e9))
    assert rates(slow)["host", "gpu0"] == 55.6e9 and "host-read" in {
        link.name for link in slow.links
    }
    free = described(4, measured(4, all_h2d=222e9, all_d2h=221e9, all_both=408e9))
    assert not {"host-memory", "host-read", "host-write"} & {link.name for link in free.links}


def test_a_slow_pair_has_a_link_of_its_own():
    rows = [r for r in measured(3) if (r["kind"], r["from"], r["to"]) != ("peer", "gpu0", "gpu2")]
    machine = described(3, [*rows, row("peer", "gpu0", "gpu2", 39e9)])
    assert rates(machine)["gpu0", "gpu2"] == 39e9
    assert rates(machine)["gpu2", "gpu0"] == rates(machine)["gpu0", "gpu1"] == 396e9


def test_peers_over_pcie_share_it_with_the_host():
    start = found(2)
    for route in start["routes"]:
        if "host" not in (route["from"], route["to"]):
            numbers = route["from"][-1], route["to"][-1]
            route["links"] = [f"pcie{numbers[0]} up", f"pcie{numbers[1]} down"]
    machine = Machine.from_json(json.dumps(describe(start, measured(2, peers=40e9), "")))
    (route,) = (r for r in machine.routes if (r.source, r.target) == ("gpu0", "gpu1"))
    assert route.links[:2] == ("gpu0 out", "gpu1 in") and route.bytes_per_second == 40e9


def test_what_was_not_measured_stays_or_is_asked_for():
    rows = [each for each in measured(2) if each["kind"] != "peer"]
    assert rates(described(2, rows))["gpu0", "gpu1"] == 396.4e9
    with pytest.raises(InvalidArgument, match="from gpu1 to host.*h2d and d2h"):
        describe(found(2), [r for r in rows if (r["kind"], r["from"]) != ("d2h", "gpu1")], "")


def test_a_matrix_has_a_line_a_pair_and_says_what_is_missing():
    rows = [
        row("h2d", "host", "gpu0", 2.9e9, 4096, reference="cudaMemcpyAsync", reference_value=3e9),
        row("h2d", "host", "gpu0", 55e9, reference="cudaMemcpyAsync", reference_value=55e9),
        row("both", "host", "gpu0", 102e9),
        row("ipc-open", "gpu0", "gpu1", 1e-3, 0, unit="s"),
        row("peer", "", "", None, 0, left_out="there is one device"),
    ]
    console = Console(width=40, record=True, file=io.StringIO())
    matrix.show([finish("copies", each, HOST, "v0") for each in rows], console)
    lines = console.export_text().splitlines()
    assert lines[1].split() == ["4", "KiB", "1", "GiB", "bound", "ratio"]
    assert lines[2] == "pinned, host to device"
    assert lines[3].split() == ["host", "→", "gpu0", "2.900", "55.00", "1.000"]
    assert lines[5].split() == ["host", "↔", "gpu0", "102.0"]
    assert "ipc-open: 1 ms" in lines
    assert "left out: peer: there is one device" in lines


def test_runs_have_a_matrix_of_their_own():
    rows = [
        row("h2d", "host", "gpu0", 55e9),
        *by_runs("h2d", "host", "gpu0", {8192: 0.59, 65536: 0.99}),
        *by_runs("d2h", "gpu0", "host", {65536: 1.0}),
    ]
    console = Console(width=40, record=True, file=io.StringIO())
    matrix.show([finish("copies", each, HOST, "v0") for each in rows], console)
    lines = console.export_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("copies by runs"))
    assert "by runs" not in "".join(lines[:first])
    assert lines[first].endswith("of 64 MiB: GB/s by size of a run")
    assert lines[first + 1].split() == ["8", "KiB", "64", "KiB", "one", "run", "bound"]
    assert lines[first + 2] == "by runs, host to device"
    assert lines[first + 3].split() == ["host", "→", "gpu0", "29.50", "49.50", "50.00"]
    assert lines[first + 5].split() == ["gpu0", "→", "host", "50.00", "50.00"]


def test_every_kind_has_words():
    assert set(matrix._WORDS) == set(measure.CASES["copies"])


def test_the_engine_copies_from_where_the_description_says_it_is_near(tmp_path, monkeypatch):
    devices = "emulated:2,memory=4MiB"
    description = tmp_path / "machine.json"
    monkeypatch.setenv("QUADRIGA_MACHINE", str(description))

    def moved(peer, host):
        rates = f"emulated:2,h2d={host}GB/s,d2h={host}GB/s,peer={peer}GB/s"
        monkeypatch.delenv("QUADRIGA_MACHINE")
        description.write_text(Machine.parse(rates).to_json())
        monkeypatch.setenv("QUADRIGA_MACHINE", str(description))
        look = quadriga.codelet(["read"], host_only=False)(lambda x: None)
        with quadriga.Engine(devices) as engine:
            tile = engine.data(np.ones((64, 64)), resident=True)
            engine.submit(look, tile.read(), device=0)
            engine.wait()
            engine.submit(look, tile.read(), device=1)
            engine.wait()
            return {(link.source, link.target) for link in engine.counters().links if link.bytes}

    assert moved(peer=9, host=1) == {(0, 1), (1, 2)}
    assert moved(peer=1, host=9) == {(0, 1), (0, 2)}


def test_copies_on_gpus(tmp_path):
    absence = quadriga._core.Machine.cuda_absence()
    if absence:
        pytest.skip(absence)
    target = tmp_path / "machine.json"
    rows = list(measure.copies(devices="cuda", quick=True, output=target))
    made = {row["kind"] for row in rows if row["value"]}
    assert {"h2d", "d2h", "both", "pageable-h2d", "pageable-d2h", "same"} <= made
    assert {"runs-h2d", "runs-d2h"} <= made
    assert all("products" in row for row in rows if "run" in row)
    rates = {row["case"]: row for row in rows if row["unit"] == "bytes/s" and row["value"]}
    assert rates["h2d-gpu0-64MiB"]["ratio"] > 0.8
    assert rates["d2h-gpu0-64MiB"]["ratio"] > 0.8
    with quadriga.config(machine=str(target)):
        machine = Machine.parse("cuda")
        assert quadriga.Engine("cuda:1").machine.devices[0].kind == "cuda"
    found = {(route.source, route.target): route.bytes_per_second for route in machine.routes}
    assert found["host", "gpu0"] == max(
        row["value"] for row in rows if row["kind"] == "h2d" and row["to"] == "gpu0"
    )
