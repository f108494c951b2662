# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/fasta_index.py: a FASTA file by its index, as `samtools faidx` writes it.
"""Where records lie, how long they are, and whether that is true of the file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import IoError

_TAIL = 2**16  # bytes behind the last record that are looked at

Path = str | os.PathLike[str]


class FastaIndex:
    """Lines of name, letters, offset of the first letter, letters a line, bytes a line.

    Attributes
    ----------
    names : list of str
    lengths : array of int64
    begins, ends : array of int64
        Bytes of the file that a record lies in, with its title, without the end of its last line.

    Raises
    ------
    IoError
        If either file can't be read, the index is older than the file, or doesn't fit it.
    """

    def __init__(self, path: Path, index: Path) -> None:
        self.path = path
        self.index = index
        size = _size(path, index)
        self.names: list[str] = []
        numbers: list[list[int]] = []
        try:
            with open(index, encoding="utf-8", errors="replace") as file:
                for line in file:
                    name, *rest = line.rstrip("\r\n").split("\t")
                    self.names.append(name)
                    numbers.append([int(each) for each in rest[:4]])
            table = np.array(numbers, np.int64).reshape(len(numbers), 4)
        except (OSError, ValueError, OverflowError) as error:
            raise IoError(
                f"{index}: can't be read as an index: expected lines of a name and four numbers, "
                f"as samtools faidx writes them: {error}"
            ) from error
        self.lengths, offsets, letters, width = table.T
        lines = np.maximum(0, self.lengths - 1) // np.maximum(1, letters)
        impossible = (table < 0).any(axis=1) | (table > size).any(axis=1)
        impossible |= lines > size // np.maximum(1, width)
        for record in np.flatnonzero(impossible)[:1]:
            raise self._misfit(int(record))
        self.ends = offsets + lines * width + self.lengths - lines * letters
        self.begins = np.concatenate([[0], self.ends[:-1]]).astype(np.int64)
        wrong = (self.lengths < 1) | (letters < 1) | (width < letters) | (offsets <= self.begins)
        wrong |= self.ends > size
        for record in np.flatnonzero(wrong)[:1]:
            raise self._misfit(int(record))
        with open(path, "rb") as text:
            text.seek(int(self.ends[-1]) if len(self.ends) else 0)
            if text.read(_TAIL).strip():
                raise IoError(f"{index}: doesn't fit {path}, which goes on behind its last record")

    def bodies(self, first: int, last: int) -> tuple[list[bytes], list[bytes]]:
        """Titles and letters with ends of lines, of records from `first` up to `last`."""
        begin, end = int(self.begins[first]), int(self.ends[last - 1])
        try:
            with open(self.path, "rb") as file:
                file.seek(begin)
                text = file.read(end - begin).lstrip()
        except OSError as error:
            raise IoError(f"{self.path}: can't be read: {error}") from error
        titles: list[bytes] = []
        bodies: list[bytes] = []
        for record in text.removeprefix(b">").split(b"\n>") if text.startswith(b">") else ():
            title, _, body = record.partition(b"\n")
            titles.append(title)
            bodies.append(body)
        if len(titles) != last - first:
            raise self._misfit(first)
        return titles, bodies

    def check(self, first: int, names: Sequence[str], lengths: np.ndarray[Any, Any]) -> None:
        """Compare what was read, from the record `first`."""
        for place, (name, length) in enumerate(zip(names, lengths.tolist(), strict=True)):
            record = first + place
            if name != self.names[record] or length != self.lengths[record]:
                raise self._misfit(record)

    def _misfit(self, record: int) -> IoError:
        return IoError(
            f"{self.index}: doesn't fit {self.path} at record {self.names[record]!r}; make it "
            "again, as by samtools faidx"
        )


def _size(path: Path, index: Path) -> int:
    """Of the file, whose index isn't older."""
    found = []
    for each in (path, index):
        try:
            found.append(os.stat(each))
        except OSError as error:
            raise IoError(f"{each}: can't be read: {error.strerror}") from error
    if found[1].st_mtime_ns < found[0].st_mtime_ns:
        raise IoError(f"{index}: is older than {path}; make it again, as by samtools faidx")
    return found[0].st_size
