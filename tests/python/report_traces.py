# SPDX-License-Identifier: BSD-3-Clause
# tests/python/report_traces.py: makes traces as the engine would, and counts as it goes.
"""A small scheduler that runs a tiled product or Cholesky on made-up devices.

Its counters are kept by increments while it runs, and its overlap by walking nanoseconds' borders
one by one, so that they share nothing with the report's recount.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

MIB = 2**20
COPY_IN, COPY_OUT, PEER_IN, COMPUTE = 1, 2, 3, 4
STREAMS = {COPY_IN: "copy_in", COPY_OUT: "copy_out", PEER_IN: "peer_in", COMPUTE: "compute"}
COST = {"dgemm": 6950, "dsyrk": 4295, "dtrsm": 5965, "dpotrf": 6000}  # microseconds


Task = dict[str, Any]


def cholesky_tasks(tiles: int) -> list[Task]:
    """Right-looking, by tiles; operands are tile numbers, the last one is updated."""
    found: list[Task] = []
    writer: dict[int, int] = {}

    def add(name: str, *operands: int) -> None:
        after = sorted({writer[tile] for tile in operands if tile in writer})
        found.append({"id": len(found), "name": name, "operands": operands, "after": after})
        writer[operands[-1]] = found[-1]["id"]

    def at(row: int, column: int) -> int:
        return row * tiles + column

    for k in range(tiles):
        add("dpotrf", at(k, k))
        for i in range(k + 1, tiles):
            add("dtrsm", at(k, k), at(i, k))
        for i in range(k + 1, tiles):
            add("dsyrk", at(i, k), at(i, i))
            for j in range(k + 1, i):
                add("dgemm", at(i, k), at(j, k), at(i, j))
    return found


def product_tasks(tiles: int) -> list[Task]:
    found: list[Task] = []
    square = tiles * tiles
    for c in range(square):
        i, j = divmod(c, tiles)
        for k in range(tiles):
            operands = (i * tiles + k, square + k * tiles + j, 2 * square + c)
            after = [found[-1]["id"]] if k else []
            found.append({"id": len(found), "name": "dgemm", "operands": operands, "after": after})
    return found


class Run:
    """Runs tasks on devices of `room` tiles and writes down what happened."""

    def __init__(
        self,
        devices: int = 2,
        room: int = 24,
        bytes_per_second: float = 3e9,
        tile_bytes: int = 8 * MIB,
        peers: bool = True,
        seed: int = 1,
        slow: float = 1.0,
    ) -> None:
        self.names = [f"emulated{i}" for i in range(devices)]
        self.room, self.tile_bytes, self.peers, self.slow = room, tile_bytes, peers, slow
        self.copy_ns = int(tile_bytes / bytes_per_second * 1e9) + 12_000
        self.speed = bytes_per_second
        self.random = random.Random(seed)
        self.events: list[dict[str, Any]] = []
        self.free = {(d, s): 0 for d in range(devices) for s in STREAMS}
        self.resident: list[dict[int, int]] = [{} for _ in range(devices)]  # tile: when valid
        self.dirty: list[set[int]] = [set() for _ in range(devices)]
        self.home: dict[int, int] = {}  # tile: when its newest content is at home; absent: always
        self.ended: dict[int, int] = {}
        self.where: dict[int, int] = {}
        self.links: dict[tuple[str, str], list[int]] = {}
        self.counters = [
            dict.fromkeys(("tasks", "hits", "misses", "evictions", "write_backs", "steals"), 0)
            for _ in range(devices)
        ]
        self.busy = [dict.fromkeys(STREAMS.values(), 0) for _ in range(devices)]

    def span(self, device: int, stream: int, start: int, ns: int, **fields: Any) -> int:
        event = {"ph": "X", "pid": device + 1, "tid": stream, "ts": start / 1e3, "dur": ns / 1e3}
        self.events.append(event | fields)
        self.busy[device][STREAMS[stream]] += ns
        self.free[device, stream] = start + ns
        return start + ns

    def instant(self, device: int, what: str, at: int, tile: int, counter: str) -> None:
        event = {"ph": "i", "cat": what, "name": what, "pid": device + 1, "tid": COMPUTE, "s": "t"}
        self.events.append(event | {"ts": at / 1e3, "args": {"tile": tile}})
        self.counters[device][counter] += 1

    def copy(self, source: int, target: int, tile: int, earliest: int, why: str) -> int:
        device, stream = (source, COPY_OUT) if target < 0 else (target, COPY_IN)
        if source >= 0 and target >= 0:
            stream = PEER_IN
        names = ["host" if d < 0 else self.names[d] for d in (source, target)]
        start = max(earliest, self.free[device, stream])
        ns = self.copy_ns + self.random.randrange(20_000)
        link = self.links.setdefault((names[0], names[1]), [0, 0])
        link[0] += self.tile_bytes
        link[1] += 1
        args = {"from": names[0], "to": names[1], "bytes": self.tile_bytes, "tile": tile}
        name = f"{names[0]} to {names[1]}"
        return self.span(device, stream, start, ns, cat="copy", name=name, args=args | {"why": why})

    def make_room(self, device: int, keep: tuple[int, ...], now: int) -> int:
        tiles = self.resident[device]
        while len(tiles) >= self.room:
            victim = next(tile for tile in tiles if tile not in keep)
            if victim in self.dirty[device]:
                now = self.copy(device, -1, victim, max(now, tiles[victim]), "evict")
                self.instant(device, "write_back", now, victim, "write_backs")
                self.dirty[device].discard(victim)
                self.home[victim] = now
            self.instant(device, "evict", now, victim, "evictions")
            del tiles[victim]
        return now

    def bring(self, device: int, tile: int, keep: tuple[int, ...], now: int) -> int:
        tiles = self.resident[device]
        if tile in tiles:
            self.instant(device, "hit", now, tile, "hits")
            tiles[tile] = tiles.pop(tile)
            return tiles[tile]
        self.instant(device, "miss", now, tile, "misses")
        now = self.make_room(device, keep, now)
        owner = next((d for d, own in enumerate(self.dirty) if tile in own), -1)
        if owner >= 0 and not self.peers:
            self.home[tile] = self.copy(owner, -1, tile, self.resident[owner][tile], "write_back")
            self.instant(owner, "write_back", self.home[tile], tile, "write_backs")
            self.dirty[owner].discard(tile)
            owner = -1
        valid = self.resident[owner][tile] if owner >= 0 else self.home.get(tile, 0)
        why = "prefetch" if self.random.random() < 0.4 else "stage"
        tiles[tile] = self.copy(owner, device, tile, max(now, valid), why)
        return tiles[tile]

    def task(self, task: Task) -> None:
        operands = task["operands"]
        device = self._place(operands)
        queued = max(0, self.free[device, COMPUTE] - 30_000_000)
        ready = max((self.ended[other] for other in task["after"]), default=0)
        ready = max(ready, *(self.bring(device, tile, operands, queued) for tile in operands))
        for other, tiles in enumerate(self.resident):
            if other != device:
                tiles.pop(operands[-1], None)
                self.dirty[other].discard(operands[-1])
        start = max(ready, self.free[device, COMPUTE])
        ns = int(COST[task["name"]] * 1000 * self.random.uniform(0.97, 1.05) * self.slow)
        args = {"task": task["id"]}
        end = self.span(device, COMPUTE, start, ns, cat="kernel", name=task["name"], args=args)
        self.counters[device]["tasks"] += 1
        self.resident[device][operands[-1]] = end
        self.dirty[device].add(operands[-1])
        self.ended[task["id"]], self.where[task["id"]] = end, device

    def _place(self, operands: tuple[int, ...]) -> int:
        def cost(device: int) -> int:
            missing = sum(tile not in self.resident[device] for tile in operands)
            return self.free[device, COMPUTE] + 2 * missing * self.copy_ns

        owner = operands[-1] % len(self.names)
        device = min(range(len(self.names)), key=lambda d: (cost(d), d != owner))
        if device != owner and self.random.random() < 0.3:
            self.instant(device, "steal", self.free[device, COMPUTE], operands[-1], "steals")
        return device

    def finish(self) -> None:
        for device, own in enumerate(self.dirty):
            for tile in sorted(own):
                end = self.copy(device, -1, tile, self.resident[device][tile], "final")
                self.instant(device, "write_back", end, tile, "write_backs")

    def overlap(self, device: int) -> tuple[int, int]:
        """Overlap and its possible value, by walking from border to border."""
        borders = []
        for event in self.events:
            ends = event.get("args", {})
            touches = self.names[device] in (ends.get("from"), ends.get("to"))
            if event["ph"] == "X" and (event["pid"] == device + 1 or touches):
                start = round(event["ts"] * 1e3)
                borders.append((start, 1, event["cat"]))
                borders.append((start + round(event["dur"] * 1e3), -1, event["cat"]))
        running, before = {"kernel": 0, "copy": 0}, 0
        both = kernels = copies = 0
        for at, step, kind in sorted(borders):
            lasted, before = at - before, at
            kernels += lasted if running["kernel"] else 0
            copies += lasted if running["copy"] else 0
            both += lasted if running["kernel"] and running["copy"] else 0
            running[kind] += step
        return both, min(kernels, copies)

    def device_counters(self) -> list[dict[str, Any]]:
        devices = []
        for index, name in enumerate(self.names):
            both, possible = self.overlap(index)
            counted: dict[str, Any] = {"name": name, **self.counters[index]}
            counted["busy_seconds"] = {kind: ns / 1e9 for kind, ns in self.busy[index].items()}
            counted["overlap_seconds"] = both / 1e9
            counted["overlap_possible_seconds"] = possible / 1e9
            devices.append(counted)
        return devices

    def document(self, tasks: list[Task], graph: bool = True) -> dict[str, Any]:
        self.finish()
        names = [
            {"ph": "M", "name": "process_name", "pid": i + 1, "args": {"name": name}}
            for i, name in enumerate(self.names)
        ]
        names += [
            {"ph": "M", "name": "thread_name", "pid": i + 1, "tid": tid, "args": {"name": name}}
            for i in range(len(self.names))
            for tid, name in STREAMS.items()
        ]
        spans = [event for event in self.events if event["ph"] == "X"]
        seconds = max(event["ts"] + event["dur"] for event in spans) / 1e6
        links = [
            {"from": way[0], "to": way[1], "bytes": moved[0], "copies": moved[1]}
            for way, moved in self.links.items()
        ]
        header: dict[str, Any] = {
            "version": 1,
            "clock": "virtual",
            "policy": "affinity",
            "devices_requested": f"emulated:{len(self.names)},memory=192MiB,h2d=3GB/s",
            "seconds": seconds,
            "machine": self.machine(),
            "counters": {"links": links, "devices": self.device_counters()},
            "bound": self.bound(tasks, spans),
        }
        if graph:
            header["tasks"] = [
                {
                    "id": t["id"],
                    "name": t["name"],
                    "device": self.where[t["id"]],
                    "after": t["after"],
                }
                for t in tasks
            ]
        return {"traceEvents": names + self.events, "quadriga": header}

    def machine(self) -> dict[str, Any]:
        links, routes = {}, []
        for name in self.names:
            for way in (("host", name), (name, "host")):
                links[" to ".join(way)] = {"bandwidth": self.speed, "latency": 1.2e-5}
                routes.append({"from": way[0], "to": way[1], "links": [" to ".join(way)]})
        devices = [{"name": name, "kind": "gpu"} for name in self.names]
        return {"name": "made up", "devices": devices, "links": links, "routes": routes}

    def bound(self, tasks: list[Task], spans: list[dict[str, Any]]) -> dict[str, Any]:
        length: dict[int, float] = {}
        cost = {e["args"]["task"]: e["dur"] / 1e6 for e in spans if e["cat"] == "kernel"}
        for task in tasks:
            longest = max((length[other] for other in task["after"]), default=0.0)
            length[task["id"]] = longest + cost[task["id"]]
        work = sum(cost.values()) / len(self.names)
        path = max(length.values())
        tiles = len({tile for task in tasks for tile in task["operands"]})
        link = tiles * self.tile_bytes / self.speed / len(self.names)
        return {
            "seconds": max(work, path, link),
            "work_seconds": work,
            "critical_path_seconds": path,
            "link_seconds": link,
            "link": f"host to {self.names[0]}",
        }


def run(tasks: list[Task], graph: bool = True, **options: Any) -> dict[str, Any]:
    """The trace of some tasks on made-up devices."""
    made = Run(**options)
    for task in tasks:
        made.task(task)
    return made.document(tasks, graph)


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
