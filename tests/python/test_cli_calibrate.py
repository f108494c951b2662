# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cli_calibrate.py: a machine's description as measured, and what takes it.
import json

import pytest

import quadriga
from quadriga import linalg

DONE, FAILED, MISUSED, UNAVAILABLE = range(4)
DEVICES = "emulated:2,memory=256MiB,h2d=2GB/s,d2h=2GB/s,peer=4GB/s,streams=2"


def test_a_machine_with_accelerators_is_described_whole(run, tmp_path):
    path = tmp_path / "machine.json"
    status, out, err = run(
        "calibrate", "-o", path, "--devices", DEVICES, "--quick", "--most", 256, "--types", "d"
    )
    assert status == DONE, err
    assert f"{path}: written" in err
    assert "emulated0-dgemm-256:" in out
    assert "GFLOP/s" in out
    found = json.loads(path.read_text())
    names = ["dgemm", "dpotrf", "dsyrk", "dtrsm"]
    assert sorted(found["kernels"]) == sorted([*names, *(f"{name}*2" for name in names)])
    (column,) = {each["rates"] for each in found["devices"]}
    for times in found["kernels"].values():
        assert sorted(map(float, times[column])) == [128, 256]
        assert all(seconds > 0 for seconds in times[column].values())
    for name in names:
        for order, seconds in found["kernels"][name][column].items():
            each_of_two = found["kernels"][f"{name}*2"][column][order]
            assert 0.999 * seconds <= each_of_two <= 2.001 * seconds
    assert 0 < found["launch"] < 0.1
    assert "message:" in out
    assert 0 <= found["message"]["busy"] <= found["message"]["latency"] < 1
    assert "planning-task:" in out
    assert all(0 < found["planning"][key] < 1 for key in ["engine", "task", "listed", "product"])
    assert {("host", "emulated0"), ("emulated1", "emulated0")} <= {
        (route["from"], route["to"]) for route in found["routes"]
    }

    status, out, err = run("simulate", "cholesky", "--n", 1024, "--machine", path, "--tile", 256)
    assert status == DONE, err
    with quadriga.Engine(f"machine={path}", virtual_clock=True, compute=False) as engine:
        assert linalg.simulate("matmul", 512, 512, 512, engine=engine, tile=128).seconds > 0


def test_the_host_alone_has_kernels_and_no_links(run, tmp_path):
    path = tmp_path / "host.json"
    status, out, err = run(
        "calibrate", "-o", path, "--devices", "cpu:1", "--quick", "--most", 128, "--types", "s"
    )
    assert status == DONE, err
    found = quadriga.Machine.from_file(path)
    assert [each.kind for each in found.devices] == ["cpu"]
    assert found.links == ()
    assert list(json.loads(path.read_text())["kernels"]["sgemm"]["cpu"]) == ["128"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--types", "dx"), "letters of sdcz"),
        (("--devices", "emulated:0"), "emulated:0"),
        (("--most", "64"), "--most"),
        (("--devices", "emulated:1,memory=64KiB", "--quick"), "no room for tiles of order 128"),
    ],
)
def test_bad_input_is_named(run, tmp_path, arguments, words):
    path = tmp_path / "machine.json"
    given = arguments if "--devices" in arguments else (*arguments, "--devices", "cpu:1")
    status, _, err = run("calibrate", "-o", path, *given)
    assert status in (FAILED, MISUSED)
    assert words in err
    assert not path.exists()


def test_a_place_that_cannot_be_written_is_named_first(run, tmp_path):
    path = tmp_path / "nowhere" / "machine.json"
    status, out, err = run("calibrate", "-o", path, "--devices", "cpu:1")
    assert status == FAILED
    assert "nowhere" in err
    assert out == ""
