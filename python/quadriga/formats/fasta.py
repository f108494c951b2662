# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/fasta.py: sequences of a FASTA file, some records at a time.
"""Proteins or nucleotides as bytes side by side."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from typing import Any, Literal, overload

from .. import _core
from ..arguments import whole
from ..errors import InvalidType, IoError
from ..pipeline.indexed import IndexedSource

_MOST = 2**31
_BLOCK = 2**20  # Bytes of a compressed file's text that are read at a time.


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
    if index is None:
        return _chunks(_opened(os.fspath(path)), records)
    return _indexed(os.fspath(path), records, index)


def _indexed(path: str, records: int, index: Any) -> IndexedSource:
    if index is not True and not isinstance(index, (str, os.PathLike)):
        raise InvalidType(f"index is {index!r}; expected the path of a .fai file, or True")
    if path.endswith(".gz"):
        raise IoError(f"{path}: is compressed, so no record can be read alone; decompress it first")
    file = _core.IndexedFasta(path, records, path + ".fai" if index is True else os.fspath(index))
    sizes: Any = file.sizes()
    return IndexedSource(lambda number: _chunk(file.read(number)), sizes)


def _opened(path: str) -> _core.FastaFile | _core.FastaText:
    if not path.endswith(".gz"):
        return _core.FastaFile(path)
    try:
        file = gzip.open(path, "rb")  # noqa: SIM115 - read as long as chunks are asked for
    except OSError as error:
        raise IoError(f"{path}: can't be read: {error}") from error

    def read(most: int) -> bytes:
        try:
            return file.read(most)
        except (OSError, EOFError, zlib.error) as error:
            raise IoError(f"{path}: can't be read: {error}") from error

    return _core.FastaText(path, read, _BLOCK)


def _chunks(text: _core.FastaFile | _core.FastaText, records: int) -> Iterator[dict[str, Any]]:
    while text.has_record:
        yield _chunk(text.take(records))


def _chunk(found: tuple[Any, Any, list[str]]) -> dict[str, Any]:
    residues, starts, names = found
    return {"residues": residues, "starts": starts, "names": names}
