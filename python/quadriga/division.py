# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/division.py: the fine tasks that a task of a Python codelet was divided into.
"""How a task divides into finer tasks on parts of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from .codelets import Codelet
from .errors import InvalidArgument, InvalidType
from .layout import Array, Layout, address_of
from .parameters import frozen


class _Whole:
    """An operand of the divided task, and where its array's elements are."""

    __slots__ = ("address", "array", "layout", "ld", "unit")

    def __init__(self, array: Array, layout: Layout, address: int, ld: int) -> None:
        self.array = array
        self.layout = layout
        self.address = address
        self.ld = ld
        self.unit = 1 if layout.core_dtype == _core.DType.bytes else array.dtype.itemsize

    def part(self, array: Array) -> _core.View | None:
        """The smallest tile that holds a part's elements; None if it isn't a part."""
        first = address_of(array) - self.address
        length = sum((n - 1) * each for n, each in zip(array.shape, array.strides, strict=True))
        last = first + length + array.dtype.itemsize
        if first < 0 or array.dtype != self.layout.dtype or last > self._bytes():
            return None
        row, column = first // self.unit % self.ld, first // self.unit // self.ld
        end = last // self.unit - 1
        rows, columns = end % self.ld + 1 - row, end // self.ld + 1 - column
        address = self.address + first
        return _core.View(address, rows, columns, self.ld, self.layout.core_dtype)

    def _bytes(self) -> int:
        return ((self.layout.cols - 1) * self.ld + self.layout.rows) * self.unit


class FineTask:
    """A codelet on parts of the operands of a task that was divided."""

    __slots__ = ("access", "codelet", "division", "operands", "parameters", "views", "wholes")

    def __init__(
        self,
        codelet: Codelet,
        views: Sequence[Array],
        wholes: Sequence[_Whole],
        operands: Sequence[_core.View],
        parameters: Mapping[str, Any],
    ) -> None:
        self.codelet = codelet
        self.views = views
        self.wholes = wholes
        self.operands = operands
        self.parameters = parameters
        self.division: Division | None = None

    @property
    def core(self) -> _core.Codelet:
        return self.codelet.core

    def run(self) -> None:
        """Call the body on the parts; called by the engine."""
        assert self.codelet.cpu is not None
        self.codelet.cpu(*self.views, **self.parameters)

    def divide(self) -> Sequence[FineTask]:
        """The fine tasks of this one; called by the engine."""
        assert self.codelet.divide is not None
        self.division = Division(self.codelet, self.wholes)
        self.codelet.divide(self.division, *self.views, **self.parameters)
        return self.division.tasks


class Division:
    """Takes the fine tasks of one task, in an order in which they could run one after the other.

    A function that divides gets one first, then what the codelet's body would get.
    """

    def __init__(self, codelet: Codelet, wholes: Sequence[_Whole]) -> None:
        self._codelet = codelet
        self._wholes = wholes
        self.tasks: list[FineTask] = []

    @classmethod
    def of(cls, codelet: Codelet, tiles: Sequence[tuple[Array, Layout, int, int]]) -> Division:
        """The division of a task of a codelet: the array, layout, address and ld of each."""
        return cls(codelet, [_Whole(*each) for each in tiles])

    def add(self, codelet: Codelet, *operands: Array, **parameters: Any) -> None:
        """Add a fine task, which runs the codelet's body.

        It follows those added before that access the same elements, if one of the two writes them.

        Parameters
        ----------
        codelet : Codelet
            One whose body neither submits tasks nor is missing.
        *operands : numpy.ndarray
            Parts of what the divided task's function got: slices, such as ``y[:10]``.
        **parameters
            What the body gets by name, copied as `Engine.submit` does.

        Raises
        ------
        InvalidArgument
            If the number of operands isn't the codelet's, or one isn't part of the divided task's
            operands, or is written and those are only read: the task fails by it. `InvalidType` if
            something else is given.
        """
        where = f"division of '{self._codelet.name}': fine task {len(self.tasks)}"
        if not isinstance(codelet, Codelet):
            raise InvalidType(f"{where} is {codelet!r}; expected a Codelet")
        where += f" ('{codelet.name}')"
        if len(operands) != len(codelet.access):
            raise InvalidArgument(
                f"{where} has {len(operands)} operands; it accesses {len(codelet.access)}"
            )
        views: list[Array] = []
        wholes: list[_Whole] = []
        tiles: list[_core.View] = []
        for index, (operand, access) in enumerate(zip(operands, codelet.access, strict=True)):
            whole, tile = self._place(f"{where}: operand {index}", operand)
            view = operand
            if access == "read" and operand.flags.writeable:
                view = operand.view()
                view.flags.writeable = False
            views.append(view)
            tiles.append(tile)
            wholes.append(whole)
        self.tasks.append(FineTask(codelet, views, wholes, tiles, frozen(parameters)))

    def _place(self, name: str, part: Any) -> tuple[_Whole, _core.View]:
        if not isinstance(part, np.ndarray):
            raise InvalidType(f"{name} is {type(part).__name__}; expected a part of an operand")
        if any(each < 0 for each in part.strides):
            raise InvalidArgument(f"{name} runs backwards; expected a slice with a positive step")
        if part.size == 0:
            whole = self._wholes[0]
            return whole, _core.View(0, 0, 0, 1, whole.layout.core_dtype)
        for whole in self._wholes:
            tile = whole.part(part)
            if tile is not None:
                return whole, tile
        raise InvalidArgument(f"{name} isn't part of the divided task's operands")
