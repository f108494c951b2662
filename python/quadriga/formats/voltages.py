# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/voltages.py: raw complex voltages of 8 bits, a chunk of samples at a time.
"""Recordings of a receiver without a header of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import repeat

import numpy as np

from ..arguments import whole
from ..errors import InvalidArgument
from .blocks import Array, blocks, records_in

_MOST = 2**40


def voltages(
    path: str | os.PathLike[str], samples: int, *, offset: int = 0, drop_last: bool = False
) -> Iterator[Array]:
    """Chunks of a file of complex voltages: signed 8-bit pairs, real part first.

    Parameters
    ----------
    path : str or path
    samples : int
        Pairs per chunk.
    offset : int
        Bytes before the first pair.
    drop_last : bool
        Whether to drop an incomplete chunk at the end.

    Returns
    -------
    iterator of array
        int8, of shape ``(samples, 2)``.

    Raises
    ------
    IoError
        At once, if the file can't be read or ends within a pair.
    InvalidArgument
        At once, if its samples aren't a multiple of a chunk and `drop_last` is False, or are fewer
        than one chunk.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import quadriga.formats
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "night.raw")
    ...     _ = path.write_bytes(bytes([1, 255, 2, 254, 3, 253]))
    ...     chunks = quadriga.formats.voltages(path, samples=2, drop_last=True)
    ...     [chunk.tolist() for chunk in chunks]
    [[[1, -1], [2, -2]]]
    """
    samples = whole("samples", samples, 1, _MOST)
    offset = whole("offset", offset, 0, _MOST)
    kind = np.dtype(np.int8)
    found = records_in(path, offset, kind, (2,))
    chunks, rest = divmod(found, samples)
    if chunks == 0:
        raise InvalidArgument(f"{path}: has {found} samples, fewer than the {samples} of a chunk")
    if rest and not drop_last:
        raise InvalidArgument(
            f"{path}: has {found} samples, which are {chunks} chunks of {samples} and {rest} more; "
            "drop_last=True leaves these out"
        )
    return blocks(path, offset, kind, (2,), repeat(samples, chunks))
