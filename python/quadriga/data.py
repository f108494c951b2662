# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/data.py: arrays that an engine knows, as tasks are given them.
"""Registered arrays, and the operands that they make."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import _core
from .codelets import Codelet
from .errors import InvalidArgument
from .foreign import DeviceArray
from .place import Place


class Owner(Protocol):
    """What data need of their engine."""

    core: _core.Engine

    def wait_data(self, data: Data, timeout: float | None = None) -> None: ...

    def submit(self, codelet: Codelet, *operands: Operand) -> Any: ...


class Operand(NamedTuple):
    """Data, and how a task touches it; made by `Data.read()` and its like."""

    data: Data
    access: str


class Data:
    """An array, or a tile without one, that tasks of an engine work on; made by `Engine.data`.

    Attributes
    ----------
    engine : Engine
        The one that it belongs to.
    """

    def __init__(self, engine: Owner, place: Place) -> None:
        self.engine = engine
        self.place = place

    @property
    def array(self) -> Any:
        """The user's array, current after `Engine.wait` or `wait`; None for a temporary."""
        given = self.place.given
        return given.native if isinstance(given, DeviceArray) else given

    @property
    def shape(self) -> tuple[int, ...]:
        return self.place.layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.place.layout.dtype

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """The content, once the tasks that touch it have ended: the user's array, if that is on
        the host; else a copy.
        """
        found = self.place.array
        if found is not None:
            self.wait()
        elif copy is False:
            raise ValueError(f"{self!r} has no array on the host, so that it has to be copied")
        else:
            found, copy = self.engine.submit(_CONTENT, self.read()).result(), False
        if copy or (copy is None and dtype not in (None, found.dtype)):
            return np.array(found, dtype)
        return np.asarray(found, dtype)

    def read(self) -> Operand:
        """As an operand that is only read."""
        return Operand(self, "read")

    def write(self) -> Operand:
        """As an operand that is overwritten whole; its old content isn't brought."""
        return self._written("write")

    def update(self) -> Operand:
        """As an operand that is read and written."""
        return self._written("update")

    def commute(self) -> Operand:
        """As an operand of updates whose order among each other doesn't matter."""
        return self._written("commute")

    def reduce(self) -> Operand:
        """As an operand that tasks add to."""
        return self._written("reduce")

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the tasks that touch it have ended and the array is current."""
        self.engine.wait_data(self, timeout)

    def final(self) -> None:
        """Say that no task submitted later writes it: it goes home as soon as it may."""
        self.engine.core.final(self.place.core)

    def evict(self) -> None:
        """Drop its replicas on devices, for measurements from a cold start."""
        self.engine.core.evict(self.place.core)

    def _written(self, access: str) -> Operand:
        if not self.place.writable:
            raise InvalidArgument(f"the array is read-only, so no task may {access} it")
        return Operand(self, access)

    def __repr__(self) -> str:
        return f"<Data {self.place.layout.dtype} {'x'.join(map(str, self.shape))}>"


def _content(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.copy()


_CONTENT = Codelet(_content, ["read"], name="content")
