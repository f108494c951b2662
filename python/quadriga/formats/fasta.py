# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/fasta.py: sequences of a FASTA file, some records at a time.
"""Proteins or nucleotides as bytes side by side."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any, Literal, NoReturn, overload

import numpy as np

from ..arguments import whole
from ..errors import InvalidType, IoError
from ..pipeline.indexed import IndexedSource
from .fasta_index import FastaIndex

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz*-"
_SPACE = b" \t\r\n"
_MOST = 2**31
_BLOCK = 2**20  # Bytes read at a time.


@overload
def fasta(
    path: str | os.PathLike[str], records: int, *, index: None = None
) -> Iterator[dict[str, Any]]: ...
@overload
def fasta(
    path: str | os.PathLike[str], records: int, *, index: str | os.PathLike[str] | Literal[True]
) -> IndexedSource: ...
def fasta(
    path: str | os.PathLike[str],
    records: int,
    *,
    index: str | os.PathLike[str] | Literal[True] | None = None,
) -> Iterator[dict[str, Any]] | IndexedSource:
    """Chunks of a FASTA file; the last may have fewer records. A ``.gz`` file is decompressed.

    Parameters
    ----------
    path : str or path
    records : int
        Sequences per chunk.
    index : str, path or True, optional
        A file as ``samtools faidx`` writes it; True: the one beside `path`, with ``.fai`` behind
        its name. Any chunk can then be read by its number, and sizes are known before content.

    Returns
    -------
    iterator of dict, or with an index an `IndexedSource` of them
        ``"residues"``, the letters of all sequences, as uint8; ``"starts"``, one int64 more than
        there are sequences: sequence `i` is ``residues[starts[i]:starts[i + 1]]``; ``"names"``, a
        list: what follows ``>``, up to the first space.

    Raises
    ------
    IoError
        Names the file and the record: at once, if it can't be read or doesn't start with ``>``;
        later, if the rest can't be, or a sequence is empty or has anything but letters, ``*`` and
        ``-``. Also an index that is older than the file, at once, or doesn't fit it.

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
    with _opened(path) as file:
        begin = _read(path, file, 1)
    if begin != b">":
        raise IoError(f"{path}: is no FASTA file: it doesn't begin with '>'")
    return _chunks(path, records) if index is None else _indexed(path, records, index)


def _indexed(path: str | os.PathLike[str], records: int, index: Any) -> IndexedSource:
    if index is not True and not isinstance(index, (str, os.PathLike)):
        raise InvalidType(f"index is {index!r}; expected the path of a .fai file, or True")
    if os.fspath(path).endswith(".gz"):
        raise IoError(f"{path}: is compressed, so no record can be read alone; decompress it first")
    known = FastaIndex(path, os.fspath(path) + ".fai" if index is True else index)
    firsts = range(0, len(known.names), records)

    def read(number: int) -> dict[str, Any]:
        first = firsts[number]
        chunk = _packed(path, *known.bodies(first, min(first + records, len(known.names))))
        known.check(first, chunk["names"], np.diff(chunk["starts"]))
        return chunk

    letters = np.add.reduceat(known.lengths, firsts) if len(firsts) else np.zeros(0)
    counts = np.diff(np.append(firsts, len(known.names)))
    return IndexedSource(read, letters + 8 * (counts + 1))


def _opened(path: str | os.PathLike[str]) -> IO[bytes]:
    try:
        if os.fspath(path).endswith(".gz"):
            return gzip.open(path, "rb")  # type: ignore[return-value]
        return open(path, "rb")
    except OSError as error:
        raise IoError(f"{path}: can't be read: {error}") from error


def _read(path: str | os.PathLike[str], file: IO[bytes], most: int) -> bytes:
    try:
        return file.read(most)
    except (OSError, EOFError, zlib.error) as error:
        raise IoError(f"{path}: can't be read: {error}") from error


def _chunks(path: str | os.PathLike[str], records: int) -> Iterator[dict[str, Any]]:
    titles: list[bytes] = []
    bodies: list[bytes] = []
    with _opened(path) as file:
        file.read(1)  # The first record's ">".
        for text in _texts(path, file):
            if len(titles) == records:
                yield _packed(path, titles, bodies)
                titles, bodies = [], []
            title, _, body = text.partition(b"\n")
            titles.append(title)
            bodies.append(body)
    yield _packed(path, titles, bodies)


def _texts(path: str | os.PathLike[str], file: IO[bytes]) -> Iterator[bytes]:
    """What lies between one ``>`` at the beginning of a line and the next."""
    held: list[bytes] = []  # Of the record that goes on.
    carried = b""  # A block's last end of line: the next one may begin with ">".
    while block := _read(path, file, _BLOCK):
        block = carried + block
        carried = b"\n" if block.endswith(b"\n") else b""
        first, *others = block.removesuffix(b"\n").split(b"\n>")
        held.append(first)
        for other in others:
            yield b"".join(held)
            held = [other]
    yield b"".join(held)


def _name(title: bytes) -> str:
    words = title.split(maxsplit=1)
    return words[0].decode("utf-8", "replace") if words else ""


def _packed(
    path: str | os.PathLike[str], titles: list[bytes], bodies: list[bytes]
) -> dict[str, Any]:
    """All bodies at once, with a ``>`` between them until their places are known."""
    names = [_name(title) for title in titles]
    joined = b">".join(bodies).translate(None, _SPACE)
    starts = np.zeros(len(bodies) + 1, np.int64)
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == ord(">"))
    others = joined.translate(None, _LETTERS)
    if len(ends) == len(others) == len(bodies) - 1:
        starts[1:] = [*ends, len(joined)]
        starts[1:] -= np.arange(len(bodies))
    if (np.diff(starts) == 0).any():
        _refuse(path, names, [body.translate(None, _SPACE) for body in bodies])
    residues = np.frombuffer(bytearray(joined.translate(None, b">")), np.uint8)
    return {"residues": residues, "starts": starts, "names": names}


def _refuse(path: str | os.PathLike[str], names: list[str], sequences: list[bytes]) -> NoReturn:
    for name, sequence in zip(names, sequences, strict=True):
        if not sequence:
            raise IoError(f"{path}: record {name!r} is empty")
        if wrong := sequence.translate(None, _LETTERS):
            raise IoError(
                f"{path}: record {name!r} has {chr(wrong[0])!r} at position "
                f"{sequence.index(wrong[:1]) + 1}; expected letters, '*' or '-'"
            )
    raise AssertionError("no record is wrong")
