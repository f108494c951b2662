# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/place.py: where a registered array or tile is; what tasks hold of it.
"""A registered tile, and the list of those without references."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from . import _core
from .layout import Array, Layout
from .residence import Lent, is_lent

#: Data that nobody holds any more, the arrays that they still may be written to, and what keeps
#: the program from writing these.
Retired = deque[tuple[_core.Data, Any, Lent | None]]


class Place:
    """A registered tile, without its engine: what tasks that are not done hold.

    When its last reference goes, it is put on the engine's list of data to remove, with its array,
    which the engine may still write to until then.
    """

    __slots__ = (
        "__weakref__", "_retired", "address", "array", "core", "frozen", "given", "layout",
        "lent", "resident", "writable",
    )  # fmt: skip

    def __init__(
        self,
        core: _core.Data,
        layout: Layout,
        array: Array | None,
        retired: Retired,
        given: Any = None,
        writable: bool = True,
        resident: bool = False,
    ) -> None:
        self.core = core
        self.layout = layout
        self.array = array  # On the host; None for what lies on a device, or nowhere.
        self.given: Any = array if given is None else given
        self.writable = writable
        self.resident = resident
        self.address = layout.start_of(array) if array is not None else None
        self.frozen: Array | None = None  # its view for those who read it, once there was one
        self.lent: Lent | None = None  # while the program can't write its array
        self._retired = retired

    def view(self, address: int, ld: int, access: str) -> Array:
        """The view that a body gets of the tile at an address; the array itself if it is there."""
        if address != self.address:
            return self.layout.view(address, ld, access != "read")
        assert self.array is not None
        if access != "read":
            return self.array
        if self.frozen is None:
            self.frozen = self.array.view()
            self.frozen.flags.writeable = False
        return self.frozen

    def is_of(self, array: Any) -> bool:
        """Whether it is this array's, as it is now: shape and flags may have been set."""
        return (
            self.given is array
            and array.shape == self.layout.shape
            and array.strides == self.layout.strides
            and array.dtype is self.layout.dtype
            and (
                self.lent is not None
                or not isinstance(array, np.ndarray)
                or array.flags.writeable == self.writable
                or (self.writable and is_lent(array))
            )
        )

    def is_at(self, address: int) -> bool:
        """Whether the view there is the array itself, whose memory stays."""
        return address == self.address

    def __del__(self) -> None:
        self._retired.append((self.core, self.given, self.lent))
