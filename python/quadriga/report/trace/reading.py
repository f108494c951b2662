# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/trace/reading.py: reads a trace file and diagnoses errors in it.
"""Reads a trace file into columns.

A file of a million events is about 150 MB of JSON. So events are turned into columns, one for each
field, while the file is parsed, and never exist as a million dictionaries.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .header import TraceError, read_header
from .trace import INSTANTS, Instants, Integers, Message, Spans, Trace

_LONGEST = 1e15  # microseconds: what nanoseconds in 64 bits can hold
_NO_TILE = 2**32 - 1
_PACKED = b"\x1f\x8b"  # how gzip's files begin


@dataclass
class _Columns:
    """Collects the fields of events as the parser delivers them."""

    path: str
    labels: dict[str, int] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)
    streams: dict[tuple[int, int], str] = field(default_factory=dict)
    kinds: dict[tuple[int, int], str] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    events: int = 0
    # In the order of Spans' columns; times as microseconds until they are whole.
    spans: tuple[array[Any], ...] = field(
        default_factory=lambda: tuple(array("d" if i < 2 else "q") for i in range(13))
    )
    instants: tuple[array[Any], ...] = field(
        default_factory=lambda: tuple(array("d" if i < 1 else "q") for i in range(5))
    )

    def take(self, item: dict[str, Any]) -> dict[str, Any] | None:
        """The parser's object hook: keeps events as columns, hands on everything else."""
        if "ph" not in item:
            return item
        try:
            self._event(item)
        except TraceError:
            raise
        except KeyError as error:
            self._refuse(f"lacks {error}")
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            self._refuse(f"has a field of the wrong type ({error})")
        self.events += 1
        return None

    def _event(self, item: dict[str, Any]) -> None:
        phase = item["ph"]
        if phase == "X":
            self._span(item)
        elif phase == "i":
            self._instant(item)
        elif phase == "M":
            self._name(item)

    def _span(self, item: dict[str, Any]) -> None:
        category = item["cat"]
        if category == "message":
            self._message(item)
        if category not in ("kernel", "copy"):
            return
        start, duration = self._time(item, "ts"), self._time(item, "dur")
        args = item.get("args") or {}
        row: tuple[Any, ...] = (start, duration, item["pid"], item["tid"], int(category == "copy"))
        label = self._label
        if category == "kernel":
            none = label("")
            row += (label(item["name"]), args.get("task", -1), none, none, none, 0, -1)
            row += (round(self._time(args, "expected") * 1e3) if "expected" in args else 0,)
        else:
            ends = (label(args["from"]), label(args["to"]), label(args.get("why", "stage")))
            if args["bytes"] < 0:
                self._refuse(f"moves {args['bytes']} bytes; expected 0 or more")
            row += (label(item["name"]), -1, *ends, args["bytes"], _tile(args), 0)
        for column, value in zip(self.spans, row, strict=True):
            column.append(value)

    def _message(self, item: dict[str, Any]) -> None:
        start, duration, args = self._time(item, "ts"), self._time(item, "dur"), item["args"]
        begin, end = round(start * 1e3), round((start + duration) * 1e3)
        self.messages.append(
            Message(
                name=str(item["name"]),
                start=begin,
                end=end,
                task=int(args["task"]),
                source=int(args["from"]),
                target=int(args["to"]),
                tag=int(args["tag"]),
                context=str(args["context"]),
                bytes=int(args["bytes"]),
                failed=bool(args.get("failed", False)),
            )
        )

    def _instant(self, item: dict[str, Any]) -> None:
        category = item["cat"]
        if category not in INSTANTS:
            return
        tile, at = _tile(item.get("args") or {}), self._time(item, "ts")
        row = (at, item["pid"], item.get("tid", 0), INSTANTS.index(category), tile)
        for column, value in zip(self.instants, row, strict=True):
            column.append(value)

    def _name(self, item: dict[str, Any]) -> None:
        if item["name"] == "process_name":
            self.processes[int(item["pid"])] = str(item["args"]["name"])
        elif item["name"] == "thread_name":
            stream, args = (int(item["pid"]), int(item["tid"])), item["args"]
            self.streams[stream] = str(args["name"])
            if "kind" in args:
                self.kinds[stream] = str(args["kind"])

    def _label(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is not a text")
        return self.labels.setdefault(text, len(self.labels))

    def _time(self, item: dict[str, Any], key: str) -> Any:
        value = item[key]
        if isinstance(value, bool) or not 0 <= value < _LONGEST:
            self._refuse(f"has {key} {value}; expected microseconds from 0")
        return value

    def forget(self, pid: int | None) -> None:
        """Drop the names of a device that isn't to be shown."""
        self.processes = {key: name for key, name in self.processes.items() if key != pid}
        self.streams = {key: name for key, name in self.streams.items() if key[0] != pid}
        self.kinds = {key: kind for key, kind in self.kinds.items() if key[0] != pid}

    def refuse_constant(self, text: str) -> NoReturn:
        """The parser's hook for NaN and Infinity."""
        self._refuse(f"holds {text}, which isn't JSON; expected finite numbers")

    def _refuse(self, what: str) -> NoReturn:
        raise TraceError(
            f"{self.path}: event {self.events} {what}; expected an event as Quadriga records it"
        )


def _tile(args: dict[str, Any]) -> int:
    """The tile that an event names; -1 if it names none."""
    tile = args.get("tile", -1)
    return tile if 0 <= tile < _NO_TILE else -1


def load(path: str | os.PathLike[str]) -> Trace:
    """Read and check a trace file.

    Parameters
    ----------
    path : path-like
        A file that a run wrote with ``trace=`` or ``--trace``.

    Returns
    -------
    Trace

    Raises
    ------
    TraceError
        If it isn't JSON, is truncated, or isn't a Quadriga trace; the message names the file, the
        place and what was expected.
    OSError
        If it can't be read.
    """
    shown = os.fspath(path)
    columns = _Columns(shown)
    document = _parse(shown, columns)
    header = read_header(shown, document)
    columns.forget(_idle_host(header))
    return Trace(
        path=shown,
        labels=list(columns.labels),
        processes=columns.processes,
        streams=columns.streams,
        kinds=columns.kinds,
        spans=Spans(*_arrays(columns.spans, 2)),
        instants=Instants(*_arrays(columns.instants, 1)),
        header=header,
        messages=tuple(columns.messages),
    )


def _idle_host(header: dict[str, Any]) -> int | None:
    """Takes out the place for tasks that need the host, if none came; returns its pid.

    Every machine without a CPU to compute has one, last of its devices: a CPU without cores.
    """
    counted, described = header["counters"]["devices"], (header.get("machine") or {}).get("devices")
    if not isinstance(described, list) or len(described) != len(counted) or not counted:
        return None
    last = described[-1]
    bare = isinstance(last, dict) and last.get("kind") == "cpu" and not last.get("cores")
    busy = sum(counted[-1].get("busy_seconds", {}).values()) + counted[-1].get("tasks", 0)
    if not bare or busy:
        return None
    counted.pop()
    return len(counted) + 1


def _arrays(columns: tuple[array[Any], ...], times: int) -> list[Integers]:
    """Columns as arrays; the first ``times`` of them turn from microseconds to nanoseconds."""
    whole = [np.rint(np.array(column) * 1e3).astype(np.int64) for column in columns[:times]]
    return whole + [np.array(column, dtype=np.int64) for column in columns[times:]]


def contents(path: str) -> bytes:
    """A trace file's content; one compressed by gzip is decompressed.

    Raises
    ------
    TraceError
        If it is compressed and damaged.
    """
    if not Path(path).is_file() and Path(path).exists():
        raise TraceError(f"{path}: is not a regular file; expected a trace file of Quadriga's")
    raw = Path(path).read_bytes()
    if not raw.startswith(_PACKED):
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as error:
        what = f"{path}: can't be unpacked ({error}); expected a whole file of gzip's"
        raise TraceError(what) from None


def _parse(path: str, columns: _Columns) -> Any:
    raw = contents(path)
    if not raw.strip():
        raise TraceError(f"{path}: is empty; expected a trace file of Quadriga's (JSON)")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            raise TraceError(_cut_short(path, len(raw), columns.events)) from None
        raise TraceError(f"{path}: isn't text (byte {error.start}); expected JSON") from None
    try:
        return json.loads(text, object_hook=columns.take, parse_constant=columns.refuse_constant)
    except json.JSONDecodeError as error:
        if _ends_early(text, error):
            raise TraceError(_cut_short(path, len(raw), columns.events)) from None
        raise TraceError(
            f"{path}: isn't JSON: {error.msg} at line {error.lineno}, column {error.colno};"
            " expected a trace file of Quadriga's"
        ) from None
    except RecursionError:
        raise TraceError(f"{path}: is nested too deeply; expected a trace file") from None


def _ends_early(text: str, error: json.JSONDecodeError) -> bool:
    """Whether JSON began well and the parser met the end of the file."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    rest = text[error.pos :].strip()
    # A number or word cut in two leaves a few characters that can't be the end of any object.
    cut = len(rest) < 12 and not rest.endswith(("}", "]"))
    return not rest or cut or error.msg.startswith("Unterminated string")


def _cut_short(path: str, length: int, events: int) -> str:
    return (
        f"{path}: ends in the middle, at byte {length:,} after {events:,} whole events; expected a"
        " complete trace file (was the run interrupted while writing it?)"
    )
