# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/filterbank.py: SIGPROC filterbank files as inputs and outputs of streams.
"""Spectra in `.fil` files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, repeat
from types import TracebackType
from typing import BinaryIO

import numpy as np

from ..arguments import whole
from ..beside import beside
from ..errors import InvalidArgument
from .blocks import Array, blocks, records_in
from .filterbank_header import FilterbankHeader, read_filterbank_header

_MOST = 2**40


def filterbank(path: str | os.PathLike[str], spectra: int) -> Iterator[Array]:
    """Chunks of a filterbank file; the last may have fewer spectra.

    Parameters
    ----------
    path : str or path
    spectra : int
        Points in time per chunk.

    Returns
    -------
    iterator of array
        Of shape ``(spectra, nifs, nchans)`` and the file's type.

    Raises
    ------
    IoError
        At once, if the header is wrong (see `read_filterbank_header`) or the data end within a
        spectrum.
    """
    spectra = whole("spectra", spectra, 1, _MOST)
    header, offset = read_filterbank_header(path)
    found = records_in(path, offset, header.dtype, header.shape)
    full, rest = divmod(found, spectra)
    counts = chain(repeat(spectra, full), [rest] if rest else [])
    return blocks(path, offset, header.dtype, header.shape, counts)


class FilterbankWriter:
    """Writes a filterbank file; after the ``with`` block it is either complete or absent.

    Parameters
    ----------
    path : str or path
    header : FilterbankHeader

    Attributes
    ----------
    spectra : int
        Points in time written so far.

    Raises
    ------
    IoError
        If the file can't be written; the message names it.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from quadriga import formats
    >>> header = formats.FilterbankHeader(nchans=3, fch1=1420.0, foff=-0.1, tsamp=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/waterfall.fil"
    ...     with formats.FilterbankWriter(path, header) as waterfall:
    ...         waterfall.add(np.ones(3, np.float32))
    ...     [chunk.shape for chunk in formats.filterbank(path, spectra=10)]
    [(1, 1, 3)]
    """

    def __init__(self, path: str | os.PathLike[str], header: FilterbankHeader) -> None:
        self.path = path
        self.header = header
        self.spectra = 0
        self._file: BinaryIO | None = None
        self._stack = ExitStack()

    def __enter__(self) -> FilterbankWriter:
        packed = self.header.pack()
        with ExitStack() as stack:
            handle, _ = stack.enter_context(beside(self.path))
            self._file = stack.enter_context(open(handle, "wb", closefd=False))
            self._file.write(packed)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file = None
        self._stack.__exit__(kind, error, trace)

    def add(self, values: Array) -> None:
        """Append spectra: an array whose last axis is the channels.

        Raises
        ------
        InvalidArgument
            If the array isn't a multiple of ``(nifs, nchans)`` values, or the file's type can't
            hold its type.
        """
        if self._file is None:
            raise InvalidArgument("a FilterbankWriter is written to inside of its with block")
        per_time = self.header.nifs * self.header.nchans
        if values.ndim == 0 or values.shape[-1] != self.header.nchans or values.size % per_time:
            raise InvalidArgument(
                f"spectra of shape {values.shape}: expected times of nifs={self.header.nifs} by "
                f"nchans={self.header.nchans}"
            )
        if not np.can_cast(values.dtype, self.header.dtype, "same_kind"):
            raise InvalidArgument(
                f"spectra of {values.dtype}; the file holds {self.header.dtype.name}"
            )
        self._file.write(np.ascontiguousarray(values, self.header.dtype).data)
        self.spectra += values.size // per_time
