# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/trace/header.py: checks what a trace file says about its run.
"""The file's ``quadriga`` object: everything that the report relies on is checked here, once."""

from __future__ import annotations

import math
from typing import Any

VERSION = 1
STREAM = (
    "chunks",
    "failed",
    "dropped",
    "seconds",
    "bound_seconds",
    "latency_median",
    "latency_99",
    "most_host_bytes",
)
STAGE = (
    "chunks",
    "busy_seconds",
    "waiting_seconds",
    "acquire_seconds",
    "reserve_seconds",
    "occupancy",
    "mean_queue",
    "chunks_per_second",
    "latency_median",
    "latency_99",
)
BOUNDS = ("work_seconds", "critical_path_seconds", "link_seconds")


class TraceError(ValueError):
    """A file isn't a Quadriga trace, or is damaged; the message names file and place."""


class _Checker:
    """Refuses a file with its name, the place and what was expected there."""

    def __init__(self, path: str) -> None:
        self.path = path

    def need(self, holds: bool, expected: str) -> None:
        if not holds:
            raise TraceError(f"{self.path}: isn't a Quadriga trace: expected {expected}")

    def number(self, value: Any, where: str) -> None:
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        good = plain and math.isfinite(value) and value >= 0
        self.need(good, f"a number from 0 for '{where}', found {_brief(value)}")

    def text(self, value: Any, where: str) -> None:
        self.need(isinstance(value, str), f"text for '{where}', found {_brief(value)}")

    def table(self, value: Any, where: str) -> dict[str, Any]:
        self.need(isinstance(value, dict), f"an object for '{where}', found {_brief(value)}")
        return value  # type: ignore[no-any-return]

    def rows(self, value: Any, where: str) -> list[Any]:
        self.need(isinstance(value, list), f"a list for '{where}', found {_brief(value)}")
        return value  # type: ignore[no-any-return]


def _brief(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def read_header(path: str, document: Any) -> dict[str, Any]:
    """The ``quadriga`` object of a parsed file, after all checks.

    Raises
    ------
    TraceError
        Naming the file, the place and what was expected there.
    """
    checker = _Checker(path)
    checker.need(isinstance(document, dict), "an object with 'traceEvents' and 'quadriga'")
    events = checker.rows(document.get("traceEvents"), "traceEvents")
    plain = all(event is None for event in events)  # the loader turned them into columns
    checker.need(plain, "only events (objects with 'ph') in 'traceEvents'")
    found = document.get("quadriga")
    checker.need(isinstance(found, dict), "an object 'quadriga' (a trace of another program?)")
    header: dict[str, Any] = found
    version = header.get("version")
    checker.need(version == VERSION, f"'quadriga.version' {VERSION}, found {_brief(version)}")
    checker.number(header.get("seconds"), "quadriga.seconds")
    for key in ("clock", "policy", "devices_requested"):
        checker.text(header.get(key, ""), f"quadriga.{key}")
    _check_counters(checker, checker.table(header.get("counters"), "quadriga.counters"))
    bound = checker.table(header.get("bound") or {}, "quadriga.bound")
    for key in ("seconds", *BOUNDS):
        checker.number(bound.get(key) or 0, f"quadriga.bound.{key}")
    _check_machine(checker, checker.table(header.get("machine") or {}, "quadriga.machine"))
    _check_tasks(checker, checker.rows(header.get("tasks") or [], "quadriga.tasks"))
    if "world" in header:
        world = checker.table(header["world"], "quadriga.world")
        for key in ("rank", "size", "origin"):
            checker.number(world.get(key), f"quadriga.world.{key}")
    for index, section in enumerate(
        checker.rows(header.get("sections") or [], "quadriga.sections")
    ):
        where = f"quadriga.sections[{index}]"
        checker.text(checker.table(section, where).get("name"), f"{where}.name")
        for key in ("start", "end"):
            checker.number(section.get(key), f"{where}.{key}")
        if "stream" in section:
            _check_stream(checker, section["stream"], f"{where}.stream")
    return header


def _check_stream(checker: _Checker, found: Any, where: str) -> None:
    stream = checker.table(found, where)
    checker.text(stream.get("limit"), f"{where}.limit")
    for key in STREAM:
        checker.number(stream.get(key), f"{where}.{key}")
    for index, stage in enumerate(checker.rows(stream.get("stages"), f"{where}.stages")):
        inside = f"{where}.stages[{index}]"
        for key in ("name", "kind"):
            checker.text(checker.table(stage, inside).get(key), f"{inside}.{key}")
        for key in STAGE:
            checker.number(stage.get(key), f"{inside}.{key}")


def _check_counters(checker: _Checker, counters: dict[str, Any]) -> None:
    for index, link in enumerate(checker.rows(counters.get("links"), "quadriga.counters.links")):
        where = f"quadriga.counters.links[{index}]"
        for key, value in checker.table(link, where).items():
            if key not in ("from", "to"):
                checker.number(value, f"{where}.{key}")
        checker.text(link.get("from"), f"{where}.from")
        checker.text(link.get("to"), f"{where}.to")
    devices = checker.rows(counters.get("devices"), "quadriga.counters.devices")
    for index, device in enumerate(devices):
        where = f"quadriga.counters.devices[{index}]"
        checker.text(checker.table(device, where).get("name"), f"{where}.name")
        for key, value in device.items():
            if key == "busy_seconds":
                for kind, seconds in checker.table(value, f"{where}.{key}").items():
                    checker.number(seconds, f"{where}.{key}.{kind}")
            elif key != "name":
                checker.number(value, f"{where}.{key}")


def _check_machine(checker: _Checker, machine: dict[str, Any]) -> None:
    links = checker.table(machine.get("links", {}), "quadriga.machine.links")
    for name, link in links.items():
        where = f"quadriga.machine.links.{name}"
        checker.number(checker.table(link, where).get("bandwidth"), f"{where}.bandwidth")
    routes = checker.rows(machine.get("routes", []), "quadriga.machine.routes")
    for index, route in enumerate(routes):
        where = f"quadriga.machine.routes[{index}]"
        for name in checker.rows(checker.table(route, where).get("links", []), f"{where}.links"):
            checker.text(name, f"{where}.links")


def _check_tasks(checker: _Checker, tasks: list[Any]) -> None:
    for index, task in enumerate(tasks):
        good = isinstance(task, dict) and isinstance(task.get("id"), int)
        after = task.get("after", []) if good else None
        checker.need(
            isinstance(after, list)
            and all(isinstance(other, int) for other in after)
            and isinstance(task.get("device", -1), int)
            and isinstance(task.get("submitted", 0), int | float),
            "{'id': number, 'name': text, 'device': number, 'after': [numbers]} for"
            f" 'quadriga.tasks[{index}]', found {_brief(task)}",
        )
