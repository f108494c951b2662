# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_doctor.py: what a machine has, what of it is used, and why the rest is not.
import dataclasses
import json
import os
import sys

import pytest

import quadriga
from quadriga.cli.main import DONE, UNAVAILABLE, status_of
from quadriga.doctor import Facts, State, collect, judge, judge_pairs
from quadriga.machine import Machine
from quadriga.message.pairs import PairPath, paths_of, predicted_seconds

GIB = 1 << 30
# A machine with a GPU that works.
GOOD = Facts(
    cores=8,
    all_cores=8,
    memory_bytes=64 * GIB,
    all_memory_bytes=64 * GIB,
    gpus=["0000:17:00.0"],
    nodes={"/dev/nvidia0": True, "/dev/nvidiactl": True},
    libraries={"cuBLAS": "", "cuSOLVER": ""},
    compiler="13.0 in /usr/lib/libnvrtc.so.13",
    kernels="/var/cache/quadriga/cuda",
)
BROKEN = {"cuda": "no CUDA device is visible"}


def finding(part, **changes):
    (found,) = (f for f in judge(dataclasses.replace(GOOD, **changes)) if f.part == part)
    return found


def test_all_of_a_good_machine_is_used():
    assert {f.state for f in judge(GOOD)} == {State.used}
    assert not any(f.remedy for f in judge(GOOD))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"driver": "libcuda.so.1: cannot open"}, "no driver: libcuda.so.1: cannot open"),
        ({"nodes": {}}, "/dev/nvidia* are missing"),
        ({"nodes": {"/dev/nvidia0": False, "/dev/nvidiactl": True}}, "not open /dev/nvidia0"),
        ({"visible": "7"}, "CUDA_VISIBLE_DEVICES is '7'"),
        ({"visible": ""}, "CUDA_VISIBLE_DEVICES is ''"),
        ({"cuda": "this build of Quadriga has no CUDA backend"}, "no CUDA backend"),
        ({"cuda": "too old; the driver is for CUDA 12.2, this build needs 13.0"}, "CUDA 12.2"),
    ],
)
def test_the_reason_is_named_and_what_would_help(changes, word):
    found = finding("GPUs", **{**BROKEN, **changes})
    assert found.state is State.unused
    assert word in found.text
    assert found.remedy


def test_the_setting_may_leave_gpus_out():
    left_out = finding("GPUs", devices="cpu:2")
    assert "'cpu:2'" in left_out.text
    assert "unset" in left_out.remedy
    for used in ("cuda:1", "auto"):
        assert finding("GPUs", devices=used).state is State.used


def test_no_gpu_is_no_fault():
    found = finding("GPUs", **BROKEN, gpus=[], nodes={}, driver="missing")
    assert (found.state, found.remedy) == (State.absent, "")


def test_limits_of_cores_and_memory_are_named():
    assert finding("cores", cores=2).text.startswith("2 of 8")
    assert "4 GiB of 64 GiB" in finding("memory", memory_bytes=4 * GIB).text


@pytest.mark.parametrize(
    ("changes", "state", "word"),
    [
        ({}, State.used, "cuBLAS and cuSOLVER found"),
        ({"libraries": {}}, State.unused, "not part of this build"),
        (
            {"libraries": {"cuBLAS": "no such file", "cuSOLVER": ""}},
            State.unused,
            "cuBLAS: no such",
        ),
        ({"driver": "missing"}, State.absent, "no driver"),
    ],
)
def test_the_cuda_part_and_its_libraries(changes, state, word):
    found = finding("CUDA", **changes)
    assert found.state is state
    assert word in found.text
    assert bool(found.remedy) == (state is State.unused)


@pytest.mark.parametrize("libraries", [{}, {"cuBLAS": "no such file"}])
def test_a_missing_cuda_part_is_no_fault_without_a_gpu(libraries):
    found = finding("CUDA", gpus=[], nodes={}, libraries=libraries)
    assert (found.state, found.remedy) == (State.absent, "")


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({}, State.used, ["13.0 in /usr/lib/libnvrtc.so.13", "kept in /var/cache"]),
        ({"compiler": "", "no_compiler": "no binding"}, State.limited, ["no binding"]),
        ({"not_kept": "others can write it"}, State.limited, ["/var/cache", "others can write it"]),
        ({"kernels": ""}, State.used, ["the cache is off"]),
    ],
)
def test_the_compiler_of_cuda_sources(changes, state, words):
    found = finding("NVRTC", **changes)
    assert found.state is state
    assert all(word in found.text for word in words)
    assert bool(found.remedy) == (state is State.limited)


@pytest.mark.parametrize("without", [{"driver": "missing"}, {"libraries": {}}])
@pytest.mark.parametrize(
    "changes", [{}, {"compiler": "", "no_compiler": "no binding"}, {"not_kept": "read-only"}]
)
def test_a_missing_compiler_is_no_fault_where_nothing_could_run(without, changes):
    found = finding("NVRTC", **without, **changes)
    assert (found.state, found.remedy) == (State.absent, "")
    assert ("13.0" in found.text) == ("compiler" not in changes)


def test_facts_of_the_compiler(monkeypatch, tmp_path):
    with quadriga.config(cache=tmp_path):
        assert collect().kernels == str(tmp_path / "cuda")
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    facts = collect()
    assert facts.compiler == ""
    assert "pip install 'quadriga[cuda]'" in facts.no_compiler


def test_facts_of_a_tree(tmp_path, monkeypatch):
    device = tmp_path / "sys/bus/pci/devices/0000:17:00.0"
    for name, vendor, kind in [
        (device, "0x10de", "0x030200"),
        (device.with_name("0000:18:00.0"), "0x10de", "0x040300"),  # its sound
        (device.with_name("0000:19:00.0"), "0x1002", "0x030000"),  # another maker's
        (device.with_name("0000:1a:00.0"), None, None),
    ]:
        name.mkdir(parents=True)
        if vendor:
            (name / "vendor").write_text(vendor + "\n")
            (name / "class").write_text(kind + "\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    facts = collect(tmp_path, "libnowhere.so.9")
    assert facts.gpus == ["0000:17:00.0"]
    assert facts.nodes == {str(tmp_path / "dev/nvidia0"): True}
    assert "libnowhere" in facts.driver
    assert facts.visible == "1"
    assert 1 <= facts.cores <= facts.all_cores == os.cpu_count()


def test_readings_of_gpus_are_judged_as_well():
    readings = {
        "nvml": {"absence": "", "driver": "535.1", "cuda_version": 12020, "gpus": []},
        "cuda": {"absence": "", "driver_version": 12020, "runtime_version": 13000, "gpus": []},
    }
    found = finding("GPUs", **BROKEN, readings=readings)
    assert "535.1" in found.text and "CUDA 12.2" in found.text
    readings["cuda"] |= {"driver_version": 13000, "architectures": "9.0"}
    gpu = {"model": "Tesla", "pci_address": "0000:17:00.0", "capability": [7, 0], "error": "",
           "has_kernels": False, "memory": 1, "free": 1, "unreachable": []}  # fmt: skip
    readings["cuda"]["gpus"] = [gpu]
    assert finding("GPU 0", readings=readings).state is State.unused


def test_nccl_is_said_where_there_is_one_and_missed_only_by_several_gpus():
    assert not any(f.part == "NCCL" for f in judge(dataclasses.replace(GOOD, no_nccl="no file")))
    two = {"gpus": ["0000:17:00.0", "0000:18:00.0"]}
    found = finding("NCCL", no_nccl="libnccl.so.2: no file", **two)
    assert found.state is State.absent and "libnccl.so.2: no file" in found.text
    found = finding("NCCL", nccl="2.27.3 in libnccl.so.2", **two)
    assert found.state is State.used and "2.27.3 in libnccl.so.2" in found.text
    assert finding("NCCL", nccl="2.27.3 in libnccl.so.2").state is State.absent


def test_command(capsys):
    status = status_of(["doctor", "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["part"] for each in found[:5]] == ["cores", "memory", "GPUs", "CUDA", "NVRTC"]
    idle = any(each["state"] == "unused" for each in found[2:])
    assert status == (UNAVAILABLE if idle else DONE)
    assert status_of(["doctor"]) == status
    assert "GPUs" in capsys.readouterr().out


def test_the_way_of_messages_between_each_two_devices(capsys):
    assert (
        status_of(["doctor", "--json", "--devices", "emulated:3,memory=32MiB,peer=20GB/s"]) == DONE
    )
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    pairs = {each["part"]: each for each in found if "->" in each["part"]}
    assert len(pairs) == 6 and {each["state"] for each in pairs.values()} == {"used"}
    assert pairs["2->0"]["text"].startswith("messages: mapped, ")
    assert pairs["2->0"]["text"].endswith(" by the machine's links)")


def test_two_processes_share_a_single_device():
    found = paths_of("emulated:1,memory=32MiB")
    assert [(each.source, each.target, each.path) for each in found] == [(0, 0, "mapped")] * 2
    assert all(each.bytes_per_second > 0 for each in found)
    assert all(each.predicted is None for each in found)  # no link within a device


def test_a_message_takes_what_its_links_say():
    machine = Machine.parse("emulated:2,memory=32MiB,peer=20GB/s,d2h=10GB/s,h2d=5GB/s")
    direct = predicted_seconds(machine, 0, 1, "mapped", 200_000_000)
    assert direct == pytest.approx(0.01, rel=0.05)
    # The slower link, and the first piece over the quicker one.
    staged = predicted_seconds(machine, 0, 1, "staged: why", 100_000_000)
    assert staged == pytest.approx(0.02 + (2 << 20) / 10e9, rel=0.05)
    assert predicted_seconds(machine, 1, 1, "mapped", 1000) is None


def test_a_way_by_the_host_is_a_limit(monkeypatch):
    why = "staged: the driver didn't open the other process's memory"
    monkeypatch.setattr("quadriga.doctor.paths_of", lambda devices: [PairPath(0, 1, why, 2e9)])
    (found,) = judge_pairs("cuda")
    assert found.state is State.limited and why in found.text and "2 GB/s" in found.text
    assert "docs/messages.md" in found.remedy


def test_pairs_that_cannot_be_tried_are_no_crash():
    (found,) = judge_pairs("emulated:2,memory=1MiB")
    assert found.state is State.unused and "memory left" in found.text
    assert status_of(["doctor", "--no-pairs"]) in (DONE, UNAVAILABLE)
