# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/blocks.py: a binary file of equal records, read some records at a time.
"""What all binary formats here share: sizes checked first, then arrays that own their memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import IoError
from ..host_arrays import empty

Array = np.ndarray[Any, Any]


def records_in(
    path: str | os.PathLike[str], offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> int:
    """How many records of a shape follow the first `offset` bytes.

    Raises
    ------
    IoError
        If the file can't be read, or ends within its head or a record.
    """
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise IoError(f"{path}: can't be read: {error.strerror}") from error
    record = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if size < offset:
        raise IoError(f"{path}: has {size} bytes; its data begin at byte {offset}")
    records, rest = divmod(size - offset, record)
    if rest:
        raise IoError(
            f"{path}: is truncated: {size - offset} bytes of data are {records} records of "
            f"{record} bytes and {rest} bytes"
        )
    return records


def blocks(
    path: str | os.PathLike[str],
    offset: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    counts: Iterator[int],
) -> Iterator[Array]:
    """Arrays of so many records each, one after the other."""
    with open(path, "rb") as file:
        file.seek(offset)
        for count in counts:
            block = empty((count, *shape), dtype)
            if file.readinto(block.data.cast("B")) != block.nbytes:
                raise IoError(f"{path}: became shorter while it was read")
            yield block
