# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_info.py: a machine as tree, table, matrix and JSON.
import json
from pathlib import Path

import pytest

from quadriga.cli import machine_text
from quadriga.cli.main import DONE, MISUSED, status_of
from quadriga.machine import Machine, Node, host_nodes

MACHINES = Path(__file__).parents[2] / "machines"

# Two sockets: a GPU on each, one without a known place; NVLinks join the first two.
TWO_SOCKETS = {
    "name": "two-sockets",
    "devices": [
        {
            "name": f"gpu{i}",
            "kind": "cuda",
            "memory": 80 << 30,
            "model": "NVIDIA A100",
            "pci_address": f"0000:{i}7:00.0",
            "pcie_generation": 4,
            "pcie_lanes": 16,
            **({"node": i} if i < 2 else {}),
        }
        for i in range(3)
    ],
    "nodes": [
        {"index": 0, "cores": 2, "memory": 64 << 30, "processors": "0-1,4-5"},
        {"index": 1, "cores": 1, "memory": 0},
    ],
    "links": {"bus": {"bandwidth": 25e9}, "nvlink": {"bandwidth": 90e9}},
    "routes": [
        {"from": "host", "to": "gpu0", "links": ["bus"]},
        {"from": "gpu0", "to": "host", "links": ["bus"]},
        {"from": "gpu0", "to": "gpu1", "links": ["nvlink"], "nvlinks": 4},
        {"from": "gpu1", "to": "gpu0", "links": ["nvlink"], "nvlinks": 4},
        {"from": "gpu0", "to": "gpu2", "links": ["bus", "bus"]},
    ],
}


@pytest.fixture
def two_sockets():
    return Machine.from_json(json.dumps(TWO_SOCKETS))


def test_a_tree_hangs_devices_on_their_nodes(two_sockets):
    slot = "PCIe 4 x16 at 0000"
    assert machine_text.tree(two_sockets, two_sockets.nodes) == [
        "machine two-sockets",
        "├── NUMA node 0: 2 cores (processors 0-1,4-5), 64 GiB",
        f"│   └── gpu0: NVIDIA A100, 80 GiB, {slot}:07:00.0, 25 GB/s in, 25 GB/s out",
        "├── NUMA node 1: 1 core",
        f"│   └── gpu1: NVIDIA A100, 80 GiB, {slot}:17:00.0",
        f"├── gpu2: NVIDIA A100, 80 GiB, {slot}:27:00.0",
        "└── NVLink",
        "    └── gpu0 – gpu1: 4 links, 90 GB/s",
    ]


def test_a_matrix_shows_rates_and_links(two_sockets):
    head, host, first, second, _ = machine_text.copies(two_sockets)
    assert head.split() == ["GB/s", "to", "host", "to", "gpu0", "to", "gpu1", "to", "gpu2"]
    assert host.split() == ["from", "host", "–", "25", "–", "–"]
    assert first.split() == ["from", "gpu0", "25", "–", "90", "(NV4)", "12.5"]
    assert second.split() == ["from", "gpu1", "–", "90", "(NV4)", "–", "–"]


def test_a_matrix_shows_routes_of_any_node():
    slow = {"from": "host", "to": "gpu0", "node": 1, "links": ["slow"]}
    links = TWO_SOCKETS["links"] | {"slow": {"bandwidth": 1e9}}
    described = TWO_SOCKETS | {"links": links, "routes": [*TWO_SOCKETS["routes"], slow]}
    machine = Machine.from_json(json.dumps(described))
    assert [route.node for route in machine.routes] == [None] * 5 + [1]
    assert machine.routes[-1].bytes_per_second == 1e9
    assert machine_text.copies(machine)[1].split()[3] == "25"


def test_tables_leave_out_what_nobody_fills(two_sockets):
    head, first, *_ = machine_text.table(two_sockets)
    assert first.split()[-5:] == ["0", "4", "x16", "at", "0000:07:00.0"]
    assert head.split() == ["device", "kind", "model", "memory", "node", "PCIe"]
    assert machine_text.table(Machine.parse("cpu:2"))[0].split() == [
        "device", "kind", "memory", "cores",
    ]  # fmt: skip


def test_a_host_without_accelerators_is_its_nodes():
    machine = Machine.parse("cpu:2")
    lines = machine_text.tree(machine, [Node(0, 1 << 30, 2, "0-1")])
    assert lines == ["machine host", "└── NUMA node 0: 2 cores (processors 0-1), 1 GiB"]
    assert machine_text.copies(machine) == []
    assert machine_text.tree(machine, [])[1] == "└── cpu: cpu, 2 cores"


def test_the_host_has_nodes():
    assert sum(node.cores for node in host_nodes()) > 0


def test_four_gpus_all_to_all_share_a_line():
    machine = Machine.from_file(MACHINES / "h200x4.json")
    lines = machine_text.tree(machine, ())
    assert "    ├── gpu0 – gpu1, gpu2, gpu3: 18 links, 396 GB/s" in lines


def test_command(capsys):
    assert status_of(["info", "--devices", f"machine={MACHINES / 'h200x4.json'}"]) == DONE
    shown = capsys.readouterr().out
    assert "gpu3: NVIDIA H200, 140 GiB, PCIe 5 x16" in shown
    assert "NUMA" not in shown, "the host's nodes are not that machine's"
    assert status_of(["info", "--json", "--devices", "emulated:1"]) == DONE
    found = json.loads(capsys.readouterr().out)["machine"]
    assert sum(node["cores"] for node in found["nodes"]) > 0
    assert Machine.from_json(json.dumps(found)).nodes


def test_a_description_of_other_devices_is_refused(capsys, monkeypatch, tmp_path):
    file = tmp_path / "one.json"
    file.write_text(Machine.parse("emulated:1,h2d=3GB/s").to_json())
    monkeypatch.setenv("QUADRIGA_MACHINE", str(file))
    assert status_of(["info", "--devices", "emulated:2"]) == MISUSED
    assert "describes emulated0; here is" in capsys.readouterr().err
    assert status_of(["info", "--devices", "emulated:1"]) == DONE
    assert "3 GB/s in" in capsys.readouterr().out
