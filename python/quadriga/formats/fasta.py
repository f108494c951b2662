# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/fasta.py: sequences of a FASTA file, some records at a time.
"""Proteins or nucleotides as bytes side by side."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..arguments import whole
from ..errors import IoError

_ALLOWED = np.zeros(256, bool)
_ALLOWED[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz*-")] = True
_MOST = 2**31


def fasta(path: str | os.PathLike[str], records: int) -> Iterator[dict[str, Any]]:
    """Chunks of a FASTA file; the last may have fewer records. A ``.gz`` file is decompressed.

    Parameters
    ----------
    path : str or path
    records : int
        Sequences per chunk.

    Returns
    -------
    iterator of dict
        ``"residues"``, the letters of all sequences, as uint8; ``"starts"``, one int64 more than
        there are sequences: sequence `i` is ``residues[starts[i]:starts[i + 1]]``; ``"names"``, a
        list: what follows ``>``, up to the first space.

    Raises
    ------
    IoError
        Names the file and the record: at once, if it can't be read or doesn't start with ``>``;
        later, if a sequence is empty or has anything but letters, ``*`` and ``-``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import quadriga.formats
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two.fasta")
    ...     _ = path.write_text(">first of two\\nMKT\\nAY\\n>second\\nGG\\n")
    ...     [chunk] = quadriga.formats.fasta(path, records=10)
    >>> bytes(chunk["residues"]), chunk["starts"].tolist(), chunk["names"]
    (b'MKTAYGG', [0, 5, 7], ['first', 'second'])
    """
    records = whole("records", records, 1, _MOST)
    try:
        with _opened(path) as file:
            begin = file.read(1)
    except (OSError, EOFError) as error:
        raise IoError(f"{path}: can't be read: {error}") from error
    if begin != b">":
        raise IoError(f"{path}: is no FASTA file: it doesn't begin with '>'")
    return _chunks(path, records)


def _opened(path: str | os.PathLike[str]) -> IO[bytes]:
    if os.fspath(path).endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return open(path, "rb")


def _chunks(path: str | os.PathLike[str], records: int) -> Iterator[dict[str, Any]]:
    names: list[str] = []
    sequences: list[bytes] = []
    for name, sequence in _records(path):
        if len(names) == records:
            yield _packed(path, names, sequences)
            names, sequences = [], []
        names.append(name)
        sequences.append(sequence)
    yield _packed(path, names, sequences)


def _records(path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    """Names and letters, white space removed."""
    title = b""
    lines: list[bytes] = []
    with _opened(path) as file:
        for line in file:
            if line.startswith(b">"):
                if title:
                    yield _name(title), b"".join(lines).translate(None, b" \t\r\n")
                title, lines = line, []
            else:
                lines.append(line)
    yield _name(title), b"".join(lines).translate(None, b" \t\r\n")


def _name(title: bytes) -> str:
    words = title[1:].split(maxsplit=1)
    return words[0].decode("utf-8", "replace") if words else ""


def _packed(
    path: str | os.PathLike[str], names: list[str], sequences: list[bytes]
) -> dict[str, Any]:
    starts = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum([len(each) for each in sequences], out=starts[1:])
    residues = np.frombuffer(bytearray(b"".join(sequences)), np.uint8)
    short = np.flatnonzero(np.diff(starts) == 0)
    if short.size:
        raise IoError(f"{path}: record {names[short[0]]!r} is empty")
    wrong = np.flatnonzero(~_ALLOWED[residues])
    if wrong.size:
        record = int(np.searchsorted(starts, wrong[0], "right")) - 1
        raise IoError(
            f"{path}: record {names[record]!r} has {chr(residues[wrong[0]])!r} at position "
            f"{wrong[0] - starts[record] + 1}; expected letters, '*' or '-'"
        )
    return {"residues": residues, "starts": starts, "names": names}
