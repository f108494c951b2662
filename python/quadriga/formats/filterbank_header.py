# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/filterbank_header.py: the header of a SIGPROC filterbank file.
"""Keywords and their values, as SIGPROC writes them.

A header is a sequence of keywords between HEADER_START and HEADER_END. A keyword is an int32, its
length, and its letters; its value follows: an int32, a float64, one byte, or a string written like
a keyword. The keyword alone determines the type of its value, so an unknown keyword can't be
skipped.

Source: D. R. Lorimer, SIGPROC (Pulsar) Signal Processing Programs, 2011, section 2.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from ..errors import InvalidArgument, IoError

Value = int | float | str
Path = str | os.PathLike[str]

_INTEGERS = [
    "telescope_id",
    "machine_id",
    "data_type",
    "barycentric",
    "pulsarcentric",
    "nbits",
    "nsamples",
    "nchans",
    "nifs",
    "nbeams",
    "ibeam",
]
_REALS = [
    "az_start",
    "za_start",
    "src_raj",
    "src_dej",
    "tstart",
    "tsamp",
    "fch1",
    "foff",
    "refdm",
    "period",
]
_STRINGS = ["rawdatafile", "source_name"]
_BYTES = ["signed"]
KINDS = (
    dict.fromkeys(_INTEGERS, "<i")
    | dict.fromkeys(_REALS, "<d")
    | dict.fromkeys(_BYTES, "<b")
    | dict.fromkeys(_STRINGS, "s")
)
_NEEDED = ("nchans", "nbits", "tsamp", "fch1", "foff")
_TYPES = {8: "<u1", 16: "<u2", 32: "<f4"}
_MOST_LETTERS = 80
_MOST_STRING = 4096


@dataclass(frozen=True)
class FilterbankHeader:
    """The description of a filterbank file's spectra; the names are SIGPROC's.

    Attributes
    ----------
    nchans : int
        Channels per spectrum.
    fch1, foff : float
        Centre of the first channel, and the step to the next channel, in MHz; `foff` is negative
        for descending frequencies.
    tsamp : float
        Time from one spectrum to the next, in seconds.
    tstart : float
        Time of the first spectrum, as a modified Julian date.
    nbits : {8, 16, 32}
        Bits of a value: unsigned integers of 8 or 16 bits, or float32.
    nifs : int
        Spectra per point in time: polarizations or beams.
    source_name : str
    others : mapping
        Further keywords of SIGPROC; angles as it writes them, ``hhmmss.s`` and ``ddmmss.s``.

    Raises
    ------
    InvalidArgument
        If a value is invalid, or `others` has a keyword that SIGPROC doesn't have.
    """

    nchans: int
    fch1: float
    foff: float
    tsamp: float
    tstart: float = 0.0
    nbits: int = 32
    nifs: int = 1
    source_name: str = "unknown"
    others: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks = {
            "nchans": (self.nchans >= 1, "at least 1"),
            "nifs": (self.nifs >= 1, "at least 1"),
            "nbits": (self.nbits in _TYPES, "8, 16 or 32"),
            "tsamp": (0 < self.tsamp < np.inf, "seconds above 0"),
            "fch1": (bool(np.isfinite(self.fch1)), "a frequency in MHz"),
            "foff": (bool(np.isfinite(self.foff)) and self.foff != 0, "MHz other than 0"),
            "tstart": (bool(np.isfinite(self.tstart)), "a modified Julian date"),
        }
        for name, (fits, expected) in checks.items():
            if not fits:
                raise InvalidArgument(f"{name} is {getattr(self, name)}; expected {expected}")
        for name in self.others:
            if name not in KINDS or name in _OWN:
                raise InvalidArgument(f"others has {name!r}, which is no further keyword")

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a value in the file."""
        return np.dtype(_TYPES[self.nbits])

    @property
    def shape(self) -> tuple[int, int]:
        """Of the values of one time: ``(nifs, nchans)``."""
        return self.nifs, self.nchans

    def frequencies(self) -> np.ndarray[Any, Any]:
        """Centres of the channels in MHz."""
        return self.fch1 + self.foff * np.arange(self.nchans)

    def pack(self) -> bytes:
        """The header as written to a file."""
        values = {"telescope_id": 0, "machine_id": 0, "data_type": 1, **self.others}
        values |= {name: getattr(self, name) for name in _OWN}
        words = [_packed(name) + _value(name, value) for name, value in values.items()]
        return b"".join([_packed("HEADER_START"), *words, _packed("HEADER_END")])


_OWN = ("source_name", "fch1", "foff", "nchans", "tstart", "tsamp", "nifs", "nbits")


def read_filterbank_header(path: Path) -> tuple[FilterbankHeader, int]:
    """The header of a file, and the offset of its data in bytes.

    Raises
    ------
    IoError
        Names the file and the error: it isn't a filterbank, it ends within its header, or the
        header has an unknown keyword, lacks a required one, or has an invalid value.
    """
    try:
        with open(path, "rb") as file:
            values = _Reader(file, path).values()
            end = file.tell()
    except OSError as error:
        if isinstance(error, IoError):
            raise
        raise IoError(f"{path}: can't be read: {error.strerror}") from error
    missing = [name for name in _NEEDED if name not in values]
    if missing:
        raise IoError(f"{path}: its header lacks {', '.join(missing)}")
    if values.pop("signed", 0):
        raise IoError(f"{path}: its values are signed; expected unsigned ones or float32")
    own: dict[str, Any] = {name: values.pop(name) for name in _OWN if name in values}
    try:
        return FilterbankHeader(**own, others=values), end
    except InvalidArgument as error:
        raise IoError(f"{path}: its header is wrong: {error}") from error


class _Reader:
    """Reads keywords and values, and knows where it is if that goes wrong."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path

    def values(self) -> dict[str, Value]:
        """All values by keyword."""
        start = _packed("HEADER_START")
        if self._file.read(len(start)) != start:
            raise IoError(
                f"{self._path}: is no filterbank file: it doesn't begin with HEADER_START"
            )
        found: dict[str, Value] = {}
        while True:
            begin = self._file.tell()
            name = self._string("a keyword", _MOST_LETTERS)
            if name == "HEADER_END":
                return found
            if name == "FREQUENCY_START":
                raise IoError(f"{self._path}: has a table of frequencies; expected fch1 and foff")
            if name not in KINDS:
                raise IoError(
                    f"{self._path}: unknown keyword {name!r} at byte {begin} of the header"
                )
            if name in found:
                raise IoError(f"{self._path}: keyword {name!r} again at byte {begin}")
            found[name] = self._value(name)

    def _value(self, name: str) -> Value:
        kind = KINDS[name]
        if kind == "s":
            return self._string(f"the text of {name!r}", _MOST_STRING)
        value: Value = struct.unpack(kind, self._bytes(struct.calcsize(kind)))[0]
        return value

    def _string(self, what: str, most: int) -> str:
        begin = self._file.tell()
        length = struct.unpack("<i", self._bytes(4))[0]
        if not 0 <= length <= most:
            raise IoError(
                f"{self._path}: {what} at byte {begin} of the header is {length} letters long; "
                f"expected at most {most}"
            )
        return self._bytes(length).decode("latin-1")

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count)
        if len(found) < count:
            raise IoError(f"{self._path}: ends within its header, at byte {self._file.tell()}")
        return found


def _packed(text: str) -> bytes:
    letters = text.encode("latin-1")
    return struct.pack("<i", len(letters)) + letters


def _value(name: str, value: Value) -> bytes:
    kind = KINDS[name]
    try:
        if kind == "s":
            return _packed(str(value))
        return struct.pack(kind, value)
    except (struct.error, UnicodeEncodeError) as error:
        raise InvalidArgument(
            f"{name} is {value!r}, which the format can't hold: {error}"
        ) from None
