# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_spill.py: tiles without a home go to a file if one is given, on all devices.
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadriga
from quadriga import linalg, report
from quadriga.cli.main import status_of

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]
EMULATED = DEVICES[1]


@pytest.fixture(params=DEVICES)
def devices(request):
    return request.param


def matrix():
    return linalg.from_function(800, lambda i, j: (i == j) * 4.0, hermitian=True)


def test_a_file_holds_what_host_memory_may_not(devices, tmp_path):
    with (
        quadriga.Engine(devices, host_memory="256KiB") as engine,
        pytest.raises(quadriga.TooLarge, match=r"256 KiB.*host_memory"),
    ):
        linalg.cho_factor(matrix(), engine=engine, tile=100)
    with quadriga.Engine(devices, host_memory="256KiB", spill=tmp_path / "spilled") as engine:
        factor = linalg.cho_factor(matrix(), engine=engine, tile=100)
        assert factor.logdet() == pytest.approx(800 * np.log(4))
        held = engine.counters()
        assert held.spill_bytes + sum(each.most_bytes for each in held.devices) > 256 * 1024
        if devices.startswith("cpu"):
            assert str(tmp_path / "spilled") in Path("/proc/self/maps").read_text()
        else:
            assert held.spill_bytes <= 256 * 1024 < held.devices[-1].most_bytes
        del factor
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_made(devices, tmp_path):
    with pytest.raises(quadriga.IoError, match="missing/spilled"):
        quadriga.Engine(devices, spill=tmp_path / "missing" / "spilled")


def test_more_than_the_disk_is_refused_with_the_figure(tmp_path):
    with (
        quadriga.Engine("cpu:2", spill=tmp_path / "spilled") as engine,
        pytest.raises(quadriga.TooLarge, match=r"[KMGT]iB.*spill"),
    ):
        linalg.estimate("cholesky", 10_000_000, from_source=True, tile=250_000, engine=engine)


def test_dropped_tiles_make_room():
    fill = quadriga.codelet(access=["write"], name="fill")(lambda x, value: x.fill(value))
    with quadriga.Engine("cpu:2", host_memory="256KiB") as engine:
        for value in range(5):
            tile = engine.temporary(25_000)  # two are too many
            engine.submit(fill, tile.write(), value=value)
            assert np.asarray(tile)[0] == value
            del tile


def link_bytes(counters):
    ways = {(link.source_name, link.target_name): link.bytes for link in counters.links}
    return ways.get(("host", "spill"), 0), ways.get(("spill", "host"), 0)


def test_the_file_is_a_space_whose_links_the_report_shows(tmp_path, capsys):
    trace = tmp_path / "trace.json"
    with quadriga.Engine(
        EMULATED, host_memory="256KiB", spill=tmp_path / "spilled", trace=trace
    ) as engine:
        assert [each.name for each in engine.machine.devices if each.only_stores] == ["spill"]
        factor = linalg.cho_factor(matrix(), engine=engine, tile=100)
        assert "spill" in factor.held().devices
        del factor
        out, back = link_bytes(engine.counters())
        assert out > 0
        assert back > 0
    facts = report.summary(report.load(trace))
    assert not facts["disagreements"]
    assert facts["bytes"]["to_file"] == out
    assert facts["bytes"]["from_file"] == back
    assert "spill" not in [each["name"] for each in facts["devices"]]  # It computes nothing.
    assert status_of(["report", str(trace)]) == 0
    assert " to the file, " in capsys.readouterr().out
    report.write_report(trace, tmp_path / "report.html")
    assert "spill" in (tmp_path / "report.html").read_text()


def test_the_setting_does_what_the_argument_does(tmp_path):
    with (
        quadriga.config(spill=tmp_path / "spilled", spill_rate="2GB/s,3GB/s"),
        quadriga.Engine(EMULATED) as engine,
    ):
        rates = {link.name: link.bytes_per_second for link in engine.machine.links}
    assert (rates["spill write"], rates["spill read"]) == (2e9, 3e9)
    with pytest.raises(quadriga.InvalidArgument, match="setting spill_rate"):
        quadriga.config.spill_rate = "fast"


def test_an_estimate_says_what_the_file_costs(tmp_path):
    seconds = {}
    for rate in ("20MB/s", "2GB/s"):
        with (
            quadriga.config(spill_rate=rate),
            quadriga.Engine(EMULATED, host_memory="512KiB", spill=tmp_path / "spilled") as engine,
        ):
            for order in (1600, 6000):  # The larger one has too many tasks to be simulated.
                said = linalg.estimate("cholesky", order, from_source=True, tile=50, engine=engine)
                assert said.links["host-spill"] > 0
                assert said.links["spill-host"] > 0
                assert "on spill" in str(said)
                assert said.device_bytes["spill"] > 0
                assert said.buffer_bytes <= 1 << 19
                seconds[rate, order] = said.seconds
    for order in (1600, 6000):
        assert seconds["20MB/s", order] > 5 * seconds["2GB/s", order]


def test_machines_describe_the_file(tmp_path, capsys):
    described = quadriga.Machine.parse(EMULATED).with_spill(tmp_path / "spilled")
    assert described.devices[-1].kind == "file"
    assert [(r.source, r.target) for r in described.routes][-2:] == [
        ("host", "spill"),
        ("spill", "host"),
    ]
    assert os.listdir(tmp_path) == []
    assert status_of(["info", "--devices", EMULATED, "--spill", str(tmp_path / "spilled")]) == 0
    shown = capsys.readouterr().out
    assert "spill: file" in shown
    assert "from spill" in shown
    with quadriga.config(spill=tmp_path / "spilled"):
        assert status_of(["info", "--devices", EMULATED, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["machine"]
    assert [each["name"] for each in found["devices"]][-1] == "spill"


def test_under_a_limit_of_addresses_the_file_is_smaller(tmp_path):
    program = (
        "import resource, sys, quadriga\n"
        "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n"
        f"with quadriga.Engine({EMULATED!r}, spill=sys.argv[1]) as engine:\n"
        "    print([d.memory_bytes for d in engine.machine.devices if d.name == 'spill'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "spilled"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (held,) = json.loads(done.stdout)
    assert 0 < held <= 2 << 30
