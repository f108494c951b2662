# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/kept.py: runs that a file keeps, so that none is simulated twice.
"""A file of simulated runs."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from ...errors import IoError
from .. import program

Row = dict[str, Any]


class Kept:
    """Runs by what was simulated, in memory and, if there is a file, a JSON line each.

    A run of the file counts only if the same program simulated it by the same description of the
    machine. May be used by several threads.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, Row] = {}
        self._digests: dict[str, str] = {}
        self._path = path
        if path is None:
            return
        try:
            # A line that an interrupted run left unfinished would swallow the next one.
            with path.open("a+b") as file:
                file.seek(0)
                text = file.read()
                if text and not text.endswith(b"\n"):
                    file.write(b"\n")
        except OSError as error:
            raise IoError(f"{path}: {error.strerror}") from error
        for line in text.decode(errors="replace").splitlines():
            try:
                each = json.loads(line)
                self._rows[each["run"]] = each["row"]
            except (ValueError, TypeError, KeyError):
                continue  # unfinished, or none of ours: simulated again

    def _digest(self, machine: str) -> str:
        if machine not in self._digests:
            folder = program.package()
            content = hashlib.sha256((folder / "bin" / program.OURS).read_bytes())
            content.update((folder / "machines" / "papers" / f"{machine}.json").read_bytes())
            self._digests[machine] = content.hexdigest()
        return self._digests[machine]

    def _key(self, words: dict[str, object], policy: str) -> str:
        return json.dumps([self._digest(str(words["machine"])), sorted(words.items()), policy])

    def find(self, words: dict[str, object], policy: str) -> Row | None:
        """What a run gave, if that is known."""
        with self._lock:
            return self._rows.get(self._key(words, policy))

    def add(self, words: dict[str, object], policy: str, row: Row) -> None:
        """Keep what a run gave."""
        with self._lock:
            key = self._key(words, policy)
            self._rows[key] = row
            if self._path is None:
                return
            try:
                with self._path.open("a") as file:
                    file.write(json.dumps({"run": key, "row": row}) + "\n")
            except OSError as error:
                raise IoError(f"{self._path}: {error.strerror}") from error
