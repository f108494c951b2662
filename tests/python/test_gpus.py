# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_gpus.py: why GPUs aren't used, judged by made-up readings.
import copy

import pytest

from quadriga.findings import State
from quadriga.gpus import driver_reason, judge_gpus, nvidia_gpus, process_name

GB = 10**9


def nvml(index, **changes):
    return {
        "index": index,
        "model": "NVIDIA H200",
        "pci_address": f"0000:{index}7:00.0",
        "memory": 150 * GB,
        "used": 1 * GB,
        "capability": [9, 0],
        "compute_mode": "shared",
        "mig": False,
        "processes": [],
        **changes,
    }


def cuda(index, **changes):
    return {
        "model": "NVIDIA H200",
        "pci_address": f"0000:{index}7:00.0",
        "capability": [9, 0],
        "error": "",
        "has_kernels": True,
        "memory": 150 * GB,
        "free": 149 * GB,
        "unreachable": [],
        **changes,
    }


def readings(seen, used, **changes):
    return {
        "nvml": {"absence": "", "driver": "580.65.06", "cuda_version": 13000, "gpus": seen},
        "cuda": {
            "absence": "",
            "driver_version": 13000,
            "runtime_version": 13000,
            "architectures": "8.0, 9.0, 10.0",
            "gpus": used,
            **changes,
        },
    }


GOOD = readings([nvml(0), nvml(1)], [cuda(0), cuda(1)])


def judged(seen, used, visible=None):
    return judge_gpus(readings(seen, used), visible, {1234: "python", 7: "Xorg"}.get)


def test_good_gpus_are_used():
    found = judge_gpus(GOOD, None)
    assert [each.part for each in found] == ["GPU 0", "GPU 1"]
    assert {each.state for each in found} == {State.used}
    assert "NVIDIA H200 at 0000:17:00.0" in found[1].text
    assert not any(each.remedy for each in found)


HOLDER = [{"pid": 1234, "bytes": 90 * GB}, {"pid": 7, "bytes": 0}]


@pytest.mark.parametrize(
    ("seen", "used", "visible", "words"),
    [
        ({}, None, "1", ["CUDA_VISIBLE_DEVICES is '1'"]),
        ({}, None, None, ["NVML sees it and CUDA doesn't, which counts 1"]),
        ({"compute_mode": "prohibited"}, None, None, ["prohibited", "nvidia-smi -i 0"]),
        ({"mig": True}, None, None, ["MIG", "-mig 0"]),
        ({"compute_mode": "prohibited"}, {"error": "busy"}, None, ["prohibited"]),
        (
            {"compute_mode": "exclusive", "processes": HOLDER},
            {"error": "busy"},
            None,
            ["to one process alone", "process 1234 (python) holds 83.8 GiB"],
        ),
        ({}, {"error": "unknown error"}, None, ["unknown error"]),
        (
            {},
            {"has_kernels": False, "capability": [7, 0]},
            None,
            ["architecture is 7.0", "kernels for 8.0, 9.0, 10.0", "ARCHITECTURES=70"],
        ),
    ],
)
def test_the_reason_is_named_and_what_would_help(seen, used, visible, words):
    used = [] if used is None else [cuda(0, **used)]
    first, second = judged([nvml(0, **seen), nvml(1)], [*used, cuda(1)], visible)
    assert first.state is State.unused and second.state is State.used
    assert first.remedy
    for word in words:
        assert word in first.text + first.remedy


def test_memory_that_others_hold_is_named_with_them():
    (found,) = judged([nvml(0, processes=HOLDER)], [cuda(0, free=60 * GB)])
    assert found.state is State.limited
    assert "55.9 GiB of 140 GiB are free" in found.text
    assert "process 1234 (python) holds 83.8 GiB, process 7 (Xorg) holds some" in found.text
    many = [{"pid": pid, "bytes": pid * GB} for pid in range(1, 7)]
    (found,) = judge_gpus(readings([nvml(0, processes=many)], [cuda(0, free=0)]), None, str)
    assert "process 6 (6) holds 5.59 GiB" in found.text and "3 more processes" in found.text
    idle = [{"pid": 7, "bytes": GB // 2}]
    (found,) = judged([nvml(0, processes=idle)], [cuda(0)])
    assert found.state is State.used


def test_pairs_without_access_are_named_once():
    gpus = [cuda(0, unreachable=[2]), cuda(1), cuda(2, unreachable=[0, 1])]
    *_, pairs = judged([nvml(i) for i in range(3)], gpus)
    assert (pairs.part, pairs.state) == ("peers", State.limited)
    assert "gpu0 and gpu2, gpu2 and gpu1;" in pairs.text


def test_without_nvml_cudas_devices_are_judged():
    found = judge_gpus(readings([], [cuda(0), cuda(1, has_kernels=False)]), None)
    assert [each.state for each in found] == [State.used, State.unused]


def test_an_old_driver_is_named_with_both_versions():
    old = copy.deepcopy(GOOD)
    old["cuda"]["driver_version"] = 12020
    text, remedy = driver_reason(old)
    assert "580.65.06" in text and "CUDA 12.2" in text and "13.0" in text and "13.0" in remedy
    assert driver_reason(GOOD) is None
    old["cuda"]["driver_version"] = 0
    assert driver_reason(old) is None


def test_names_of_processes():
    import os

    assert process_name(os.getpid())
    assert process_name(2**30) == ""


def test_gpus_on_the_bus(tmp_path):
    for name, vendor, kind in [("0000:17:00.0", "0x10de", "0x030200"),
                               ("0000:18:00.0", "0x10de", "0x040300"),
                               ("0000:19:00.0", "0x1002", "0x030000")]:  # fmt: skip
        device = tmp_path / "sys/bus/pci/devices" / name
        device.mkdir(parents=True)
        (device / "vendor").write_text(vendor + "\n")
        (device / "class").write_text(kind + "\n")
    assert nvidia_gpus(tmp_path) == ["0000:17:00.0"]
