# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/host_arrays.py: new arrays in memory that suits the stream that asks for them.
"""Arrays on the host that are quick to copy to devices: pinned, and used again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core

_LEAST = 4096  # bytes; copies of fewer take as long from any memory


class _Current(threading.local):
    buffers: _core.HostBuffers | None = None


_current = _Current()


def empty(shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64) -> np.ndarray[Any, Any]:
    """Return an array without content, for the source of a pipeline to fill.

    Within a source it lies in memory of the stream that is quick to copy to its devices, and that
    is used again once the array is gone; elsewhere it is as of `numpy.empty`.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : dtype

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> def ramps():
    ...     for number in range(3):
    ...         ramp = quadriga.pipeline.empty(1000, "f4")
    ...         ramp[:] = np.arange(1000) + number
    ...         yield ramp
    >>> pipeline = quadriga.Pipeline(devices="emulated:1,memory=1MiB").source(ramps())
    >>> _ = pipeline.reduce("array", "max").run()
    >>> pipeline.reduced
    {'array': array(1001., dtype=float32)}
    """
    return empty_of(_current.buffers, shape, dtype)


def empty_of(
    buffers: _core.HostBuffers | None, shape: Any, dtype: npt.DTypeLike
) -> np.ndarray[Any, Any]:
    """The same from some buffers."""
    kind = np.dtype(dtype)
    sizes = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    size = prod(int(each) for each in sizes) * kind.itemsize
    if buffers is None or kind.hasobject or size < _LEAST:
        return np.empty(shape, kind)
    memory = buffers.take(size)
    if memory is None:
        return np.empty(shape, kind)
    found: np.ndarray[Any, Any] = memory.view(kind).reshape(sizes)
    return found


@contextmanager
def from_buffers(buffers: _core.HostBuffers | None) -> Iterator[None]:
    """Arrays that this thread asks for in the ``with`` block come from there."""
    before, _current.buffers = _current.buffers, buffers
    try:
        yield
    finally:
        _current.buffers = before
