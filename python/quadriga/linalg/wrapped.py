# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/linalg/wrapped.py: objects of others that stand for matrices, as sources.
"""What has ``shape``, ``dtype`` and ``read``, and arrays in files or in parts: those of h5py, Zarr,
Dask and others that are read by slices and say by ``chunks`` that they aren't in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..typing import SourceLike
from .sources import Array, Source


class _Wrapped(Source):
    """A user's object with `shape`, `dtype` and `read`."""

    def __init__(self, inner: SourceLike) -> None:
        super().__init__(inner.shape, inner.dtype, bool(getattr(inner, "hermitian", False)))
        self._inner = inner

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        returned: Any = self._inner.read(rows, cols, out)
        self._check_returned(returned, out)

    def _kind(self) -> str:
        return type(self._inner).__name__


class Stored(Source):
    """An array that is read part by part, where its elements are needed."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner.shape, inner.dtype, False)
        self._inner = inner
        self.must_be_finite = False

    def read(self, rows: slice, cols: slice, out: Array) -> None:
        out[...] = np.asarray(self._inner[rows, cols])
        if self.must_be_finite and not np.isfinite(out).all():
            raise InvalidArgument("array must not contain infs or NaNs")


def as_source(value: Any) -> Source | None:
    """A source, if the value is one or has what one needs."""
    if isinstance(value, Source):
        return value
    if isinstance(value, np.ndarray) or not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return None
    if callable(getattr(value, "read", None)):
        return _Wrapped(value)
    in_parts = hasattr(value, "chunks") and hasattr(value, "__getitem__")
    return Stored(value) if in_parts and len(value.shape) == 2 else None
