# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/market.py: a reader of Matrix Market files that trusts nothing unchecked.
"""A reader of Matrix Market files whose headers may be wrong.

SciPy's reader ends the process on some truncated files.
Source: Boisvert, Pozo, Remington, The Matrix Market Exchange Formats, NISTIR 5935, 1996.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import InvalidArgument, IoError

Array = npt.NDArray[Any]

_FIELDS = {"real": 1, "double": 1, "integer": 1, "complex": 2, "pattern": 0}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_MOST_LINE = 1 << 16
_MOST_INDEX = 1 << 53  # Numbers are read as float64.


@dataclass(frozen=True)
class Triplets:
    """Elements by row and column, those that a symmetry implies included."""

    shape: tuple[int, int]
    rows: Array
    columns: Array
    values: Array


@dataclass(frozen=True)
class _Header:
    form: str
    field: str
    symmetry: str
    sizes: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """That follow the header."""
        per_value = _FIELDS[self.field]
        if self.form == "coordinate":
            return self.sizes[2] * (2 + per_value)
        rows, cols = self.sizes
        if self.symmetry == "general":
            return rows * cols * per_value
        kept = rows * (rows - 1) // 2 if self.symmetry == "skew-symmetric" else None
        return (rows * (rows + 1) // 2 if kept is None else kept) * per_value


def read_market(path: str | os.PathLike[str]) -> Triplets:
    """The matrix in a file.

    Raises
    ------
    IoError
        If the file can't be read.
    InvalidArgument
        If the file contradicts its header; nothing larger than the file is allocated before.
    """
    name = Path(path)
    try:
        with name.open("rb") as file:
            header = _read_header(name, file)
            numbers = _read_numbers(name, file, header)
    except OSError as error:
        raise IoError(f"can't read {name}: {error.strerror or error}") from error
    found = _coordinates(name, header, numbers) if header.form == "coordinate" else None
    return _mirrored(found or _array(header, numbers), header.symmetry)


def _refuse(name: Path, why: str) -> InvalidArgument:
    return InvalidArgument(f"{name} is not a Matrix Market file: {why}")


def _line(name: Path, file: BinaryIO) -> str:
    line = file.readline(_MOST_LINE)
    if not line.endswith(b"\n"):
        raise _refuse(name, "its header doesn't end")
    return line.decode("latin-1").strip()


def _read_header(name: Path, file: BinaryIO) -> _Header:
    words = file.readline(_MOST_LINE).decode("latin-1").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise _refuse(name, "its first line isn't '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'")
    form, field, symmetry = words[2:]
    if form not in ("coordinate", "array"):
        raise _refuse(name, f"format {form!r}; expected coordinate or array")
    if field not in _FIELDS or (field == "pattern" and form == "array"):
        raise _refuse(name, f"field {field!r} of format {form}; expected one of {list(_FIELDS)}")
    if symmetry not in _SYMMETRIES:
        raise _refuse(name, f"symmetry {symmetry!r}; expected one of {list(_SYMMETRIES)}")
    line = _line(name, file)
    while not line or line.startswith("%"):
        line = _line(name, file)
    expected = 3 if form == "coordinate" else 2
    sizes = tuple(int(word) if word.isdigit() else -1 for word in line.split())
    if len(sizes) != expected or not all(0 <= size < _MOST_INDEX for size in sizes):
        raise _refuse(name, f"sizes {line[:80]!r}; expected {expected} numbers of at least 0")
    if symmetry != "general" and sizes[0] != sizes[1]:
        raise _refuse(name, f"a {symmetry} matrix of {sizes[0]} x {sizes[1]}")
    return _Header(form, field, symmetry, sizes)


def _read_numbers(name: Path, file: BinaryIO, header: _Header) -> Array:
    left = os.fstat(file.fileno()).st_size - file.tell()
    # Each number takes a digit and what separates it.
    if header.numbers > (left + 1) // 2:
        raise _refuse(
            name, f"its header promises {header.numbers} numbers, and {left} bytes follow"
        )
    text = np.frombuffer(file.read() or b" ", np.uint8)
    numbers = np.empty(header.numbers)
    count, bad = _core.read_numbers(text.ctypes.data, text.size, numbers.ctypes.data, numbers.size)
    if bad >= 0:
        found = bytes(text[bad : bad + 20]).decode("latin-1").split()[:1]
        raise _refuse(name, f"{found[0] if found else 'something'!r} is not a number")
    if count != header.numbers:
        raise _refuse(name, f"its header promises {header.numbers} numbers; it has {count}")
    return numbers


def _values(field: str, numbers: Array) -> Array:
    """Of numbers by rows: one real one, or two parts, or none."""
    if field == "pattern":
        return np.ones(len(numbers))
    if field == "complex":
        return np.ascontiguousarray(numbers).view(complex)[:, 0]
    return numbers[:, 0].astype(np.int64) if field == "integer" else numbers[:, 0]


def _coordinates(name: Path, header: _Header, numbers: Array) -> Triplets:
    rows, cols, count = header.sizes
    table = numbers.reshape(count, 2 + _FIELDS[header.field])
    places = table[:, :2]
    good = (places >= 1) & (places <= (rows, cols)) & (places == np.floor(places))
    if not good.all():
        which = int(np.flatnonzero(~good.all(axis=1))[0])
        i, j = places[which]
        raise _refuse(name, f"element {which + 1} is at ({i:g}, {j:g}) of {rows} x {cols}")
    indices = places.astype(np.int64) - 1
    return Triplets((rows, cols), indices[:, 0], indices[:, 1], _values(header.field, table[:, 2:]))


def _array(header: _Header, numbers: Array) -> Triplets:
    """Column by column; of a symmetric matrix the lower triangle."""
    rows, cols = header.sizes
    values = _values(header.field, numbers.reshape(-1, _FIELDS[header.field]))
    if header.symmetry == "general":
        j, i = np.divmod(np.arange(rows * cols), max(1, rows))
    else:
        j, i = np.triu_indices(rows, 1 if header.symmetry == "skew-symmetric" else 0)
    kept = values != 0
    return Triplets((rows, cols), i[kept], j[kept], values[kept])


def _mirrored(found: Triplets, symmetry: str) -> Triplets:
    if symmetry == "general":
        return found
    off = found.rows != found.columns
    values = found.values[off]
    if symmetry == "skew-symmetric":
        values = -values
    elif symmetry == "hermitian":
        values = values.conj()
    return Triplets(
        found.shape,
        np.concatenate([found.rows, found.columns[off]]),
        np.concatenate([found.columns, found.rows[off]]),
        np.concatenate([found.values, values]),
    )
