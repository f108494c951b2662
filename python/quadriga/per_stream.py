# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/per_stream.py: library objects needed once per stream, such as an FFT plan.
"""Separate values for each stream of each device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

_here = threading.local()


class inside:  # noqa: N801  # a context, without what a generator costs
    """A callable runs that queues on a stream of a device."""

    __slots__ = ("_key",)

    def __init__(self, stream: int, device: int) -> None:
        self._key = (device, stream)

    def __enter__(self) -> None:
        _here.key = self._key

    def __exit__(self, *_: object) -> None:
        _here.key = None


def _key() -> Hashable:
    """On the host a thread is a stream."""
    return getattr(_here, "key", None) or threading.get_ident()


class PerStream(Generic[Value]):
    """One value for each stream of each device on which a kernel runs.

    Two streams must not use a library's plan or handle at once. Calling this object within a kernel
    returns the value of the kernel's stream, created on first use there; on CPU cores and emulated
    devices each thread is a stream.

    Parameters
    ----------
    make : callable
        Creates a value; takes no arguments. The array library's current stream is the kernel's.
    close : callable, optional
        Called with each value by `close`, and at the end of a ``with`` block.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> buffers = quadriga.PerStream(lambda: np.empty(1000))
    >>> def scale(x):
    ...     buffer = buffers()[: len(x)]
    ...     np.multiply(x, 2, out=buffer)
    ...     x[:] = buffer
    >>> pipeline = quadriga.Pipeline(devices="cpu:2").source([np.ones(3), np.ones(5)])
    >>> [c["array"].sum() for c in pipeline.kernel(scale, updates=["array"]).results()]
    [np.float64(6.0), np.float64(10.0)]
    """

    def __init__(
        self, make: Callable[[], Value], close: Callable[[Value], Any] | None = None
    ) -> None:
        self._make = make
        self._close = close
        self._values: dict[Hashable, Value] = {}  # steps on it are atomic each

    def __call__(self) -> Value:
        key = _key()
        if key not in self._values:
            self._values[key] = self._make()
        return self._values[key]

    def __len__(self) -> int:
        return len(self._values)

    def close(self) -> None:
        """Close all values; call it once no kernel uses them any more."""
        while self._values:
            _, value = self._values.popitem()
            if self._close is not None:
                self._close(value)

    def __enter__(self) -> PerStream[Value]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
