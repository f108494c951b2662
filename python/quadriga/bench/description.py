# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/description.py: a machine's description with links as they were measured.
"""Descriptions of machines: devices and kernel times as discovered, links as measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..errors import InvalidArgument

Row = dict[str, Any]
Json = dict[str, Any]

# Several copies at once that reach less than this share of their sum have a limit of their own.
_SHARED = 0.97
# Pairs of devices that reach less than this share of what both reach with others have their own.
_ALIKE = 0.9
# Runs that reach this share of what one run does lose nothing.
_WHOLE = 0.97


class _Measured:
    """Best rates and latencies by kind and ends."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._of: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        self._by_runs: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
        for row in rows:
            if not row.get("value") or row["unit"] != "bytes/s":
                continue
            key = (row["kind"], row["from"], row["to"])
            if "run" in row:
                share = row["value"] / row["reference_value"]
                self._by_runs.setdefault(key, []).append((int(row["run"]), share))
            else:
                self._of.setdefault(key, []).append((row["bytes"], row["value"]))

    def rate(self, kind: str, source: str, target: str) -> float | None:
        found = self._of.get((kind, source, target))
        return max(rate for _, rate in found) if found else None

    def runs(self, kind: str, source: str, target: str) -> Json | None:
        """Fractions of the rate that short runs reach, up to the first length without a loss."""
        found = sorted(self._by_runs.get((f"runs-{kind}", source, target), []))
        if not found:
            return None
        short = 1 + max((i for i, (_, share) in enumerate(found) if share < _WHOLE), default=-1)
        enough = found[short][0] if short < len(found) else 2 * found[-1][0]
        table = {str(run): round(min(share, 1.0), 3) for run, share in found[:short]}
        return table | {str(enough): 1.0}

    def latency(self, kind: str, source: str, target: str) -> float:
        """Seconds that a small copy within a sequence takes beyond those of its bytes."""
        size, small = min(self._of[kind, source, target])
        best = self.rate(kind, source, target)
        assert best is not None
        return max(0.0, size / small - size / best)


def describe(found: Json, rows: Iterable[Row], source: str) -> Json:
    """The description of a machine by what was measured on it.

    Parameters
    ----------
    found : dict
        The description by discovery.
    rows : iterable of dict
        Lines of the benchmark `copies`.
    source : str
        Who measured it, and when.

    Raises
    ------
    InvalidArgument
        If a device's copies from or to the host were not measured.
    """
    return _Description(found, _Measured(rows)).result(source)


class _Description:
    def __init__(self, found: Json, measured: _Measured) -> None:
        self._found = found
        self._measured = measured
        self._links: dict[str, Json] = {}
        self._routes: list[Json] = []
        self._names = [each["name"] for each in found["devices"] if each.get("memory")]

    def result(self, source: str) -> Json:
        ins = {name: self._need("h2d", "host", name) for name in self._names}
        outs = {name: self._need("d2h", name, "host") for name in self._names}
        boths = {
            name: min(self._measured.rate("both", "host", name) or math.inf, ins[name] + outs[name])
            for name in self._names
        }
        into, out_of = self._host_limits(sum(ins.values()), sum(outs.values()), sum(boths.values()))
        for name in self._names:
            way_in = [*into, self._link(f"{name} in", ins[name], "h2d", "host", name)]
            way_out = [self._link(f"{name} out", outs[name], "d2h", name, "host"), *out_of]
            if boths[name] < _SHARED * (ins[name] + outs[name]):
                self._add(f"{name} both", boths[name])
                way_in.append(f"{name} both")
                way_out.append(f"{name} both")
            self._routes += [_route("host", name, way_in), _route(name, "host", way_out)]
        self._peers()
        # The engine adds a CPU without cores for tasks that need the host.
        devices = [
            each for each in self._found["devices"] if each.get("memory") or each.get("cores")
        ]
        known = {
            key: self._found[key] for key in ("nodes", "message", "planning") if key in self._found
        }
        return (
            {"name": self._found["name"], "devices": devices}
            | known
            | {
                "links": self._links,
                "routes": self._routes,
                "kernels": self._found.get("kernels", {}),
                "launch": self._found.get("launch", 0),
                "source": source,
            }
        )

    def _need(self, kind: str, source: str, target: str) -> float:
        rate = self._measured.rate(kind, source, target)
        if rate is None:
            raise InvalidArgument(
                f"no copy from {source} to {target} was measured; a description needs the cases "
                "h2d and d2h"
            )
        return rate

    def _add(self, name: str, rate: float, latency: float = 0.0) -> None:
        self._links[name] = {"bandwidth": rate, "latency": latency}

    def _link(self, name: str, rate: float, kind: str, source: str, target: str) -> str:
        self._add(name, rate, self._measured.latency(kind, source, target))
        runs = self._measured.runs(kind, source, target) or self._found_runs(source, target)
        if runs:
            self._links[name]["runs"] = runs
        return name

    def _found_runs(self, source: str, target: str) -> Json:
        """The discovered runs, where none were measured."""
        for link in self._found_route(source, target).get("links", []):
            if runs := self._found["links"][link].get("runs"):
                return dict(runs)
        return {}

    def _host_limits(self, ins: float, outs: float, boths: float) -> tuple[list[str], list[str]]:
        """Links that all copies from the host share, and those that all copies to it share."""
        read, write, both = (
            self._measured.rate(f"all-{way}", "all", "all") for way in ("h2d", "d2h", "both")
        )
        into, out_of = [], []
        memory = math.inf
        if both and both < _SHARED * min(boths, (read or ins) + (write or outs)):
            memory = max(both, read or 0, write or 0)
            self._add("host-memory", memory)
            into, out_of = ["host-memory"], ["host-memory"]
        if read and read < _SHARED * min(ins, memory):
            self._add("host-read", read)
            into.append("host-read")
        if write and write < _SHARED * min(outs, memory):
            self._add("host-write", write)
            out_of.append("host-write")
        return into, out_of

    def _peers(self) -> None:
        pairs = {
            (source, target): rate
            for source in self._names
            for target in self._names
            if (rate := self._measured.rate("peer", source, target))
        }
        for (source, target), rate in pairs.items():
            out = max(each for (one, _), each in pairs.items() if one == source)
            into = max(each for (_, other), each in pairs.items() if other == target)
            links = self._ends(source, target, out, into)
            # What goes by way of the host or PCIe has the rate of neither.
            if rate < _ALIKE * min(self._links[link]["bandwidth"] for link in links):
                own = f"{source} to {target}"
                self._add(own, rate)
                links.append(own)
            nvlinks = self._found_route(source, target).get("nvlinks", 0)
            self._routes.append(_route(source, target, links, nvlinks))
        for route in self._found["routes"]:
            if "host" not in (route["from"], route["to"]) and (
                (route["from"], route["to"]) not in pairs
            ):
                self._keep(route)

    def _ends(self, source: str, target: str, out: float, into: float) -> list[str]:
        """Links of a device to its peers, or those to the host where peers share them."""
        of_host = {
            link
            for route in self._found["routes"]
            if "host" in (route["from"], route["to"])
            for link in route["links"]
        }
        if of_host & set(self._found_route(source, target).get("links", [])):
            return [f"{source} out", f"{target} in"]
        if f"{source} peer out" not in self._links:
            latency = self._measured.latency("peer", source, target)
            self._add(f"{source} peer out", out, latency)
        if f"{target} peer in" not in self._links:
            self._add(f"{target} peer in", into)
        return [f"{source} peer out", f"{target} peer in"]

    def _found_route(self, source: str, target: str) -> Json:
        for route in self._found["routes"]:
            if (route["from"], route["to"]) == (source, target):
                return dict(route)
        return {}

    def _keep(self, route: Json) -> None:
        """A route that was not measured stays as it was found."""
        for link in route["links"]:
            self._links.setdefault(link, self._found["links"][link])
        self._routes.append(route)


def _route(source: str, target: str, links: list[str], nvlinks: int = 0) -> Json:
    route = {"from": source, "to": target, "links": links}
    return route | ({"nvlinks": nvlinks} if nvlinks else {})
