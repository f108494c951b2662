# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/layout.py: layouts of messages, made from arrays or by their makers.
"""Layouts: where the elements of a message are in an array, and in which order they travel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._core import MessageLayout, decoded_layout, encoded_layout
from ..errors import InvalidArgument, InvalidType
from ..typing import Datatype
from .elements import address_of, dtype_of, element_of, reach_of

NDArray = npt.NDArray[Any]
Order = Literal["C", "F"]
Operation = str | Callable[[NDArray, NDArray], NDArray]


class Layout:
    """Where the elements of a message are, and in which order they travel: a pure value.

    Offsets count from the first element of the array that a layout is used with. Layouts of equal
    elements at equal places in equal order are equal, however they were made. Makers take `of`,
    a layout or anything that is a NumPy type; lengths, strides and displacements count in extents
    of it.

    Examples
    --------
    >>> Layout.vector(3, 2, 4, "f8")
    Layout(strides 3 x 32 B of runs of 16 B, 6 float64)
    >>> Layout.vector(3, 2, 4, "f8") == Layout.of(np.zeros((3, 4))[:, :2])
    True
    """

    __slots__ = ("core",)

    def __init__(self, of: Layout | MessageLayout | npt.DTypeLike) -> None:
        """One element of a type, fields and all; or the same layout."""
        if isinstance(of, Layout):
            self.core: MessageLayout = of.core
        else:
            self.core = of if isinstance(of, MessageLayout) else element_of(of)

    @classmethod
    def of(cls, array: NDArray) -> Layout:
        """All elements of an array or of any view of one, the last index fastest."""
        view = np.asarray(array)
        core = MessageLayout.view(list(view.shape), list(view.strides), element_of(view.dtype))
        return cls(core)

    @classmethod
    def contiguous(cls, count: int, of: Layout | npt.DTypeLike) -> Layout:
        """`count` elements one after the other."""
        return cls(MessageLayout.contiguous(count, cls(of).core))

    @classmethod
    def vector(cls, count: int, length: int, stride: int, of: Layout | npt.DTypeLike) -> Layout:
        """`count` blocks of `length` elements, `stride` elements apart."""
        return cls(MessageLayout.vector(count, length, stride, cls(of).core))

    @classmethod
    def subarray(
        cls,
        shape: Sequence[int],
        part: Sequence[int],
        start: Sequence[int],
        of: Layout | npt.DTypeLike,
        order: Order = "C",
    ) -> Layout:
        """The part of an array of `shape` that begins at `start`."""
        fortran = _is_fortran(order)
        core = MessageLayout.subarray(list(shape), list(part), list(start), fortran, cls(of).core)
        return cls(core)

    @classmethod
    def indexed(
        cls,
        lengths: int | Sequence[int] | NDArray,
        displacements: Sequence[int] | NDArray,
        of: Layout | npt.DTypeLike,
        in_bytes: bool = False,
    ) -> Layout:
        """Blocks of `lengths[i]` elements at `displacements[i]`, which may count in bytes.

        One length holds for all blocks. Displacements may repeat in what is sent.
        """
        places = _integers(displacements, "displacements")
        if np.ndim(lengths) == 0:
            counts = _integers(lengths, "lengths") * len(places)
        else:
            counts = _integers(lengths, "lengths")
        return cls(MessageLayout.indexed(counts, places, in_bytes, cls(of).core))

    @classmethod
    def structure(
        cls,
        lengths: Sequence[int],
        displacements: Sequence[int],
        fields: Sequence[Layout | npt.DTypeLike],
    ) -> Layout:
        """`lengths[i]` of `fields[i]` at `displacements[i]` bytes."""
        cores = [cls(field).core for field in fields]
        return cls(MessageLayout.structure(list(lengths), list(displacements), cores))

    @classmethod
    def block_cyclic(
        cls,
        shape: Sequence[int],
        block: Sequence[int],
        grid: Sequence[int],
        coordinates: Sequence[int],
        of: Layout | npt.DTypeLike,
        order: Order = "C",
        in_whole: bool = True,
    ) -> Layout:
        """The part that the process at `coordinates` of a `grid` has of an array dealt in blocks.

        The elements are where the whole array has them, or (`in_whole=False`) where an array of
        the process's own has them.
        """
        numbers = (list(shape), list(block), list(grid), list(coordinates))
        return cls(MessageLayout.block_cyclic(*numbers, _is_fortran(order), in_whole, cls(of).core))

    @classmethod
    def triangle(
        cls,
        n: int,
        of: Layout | npt.DTypeLike,
        ld: int | None = None,
        lower: bool = True,
        diagonal: bool = True,
        order: Order = "C",
    ) -> Layout:
        """A half of a square matrix, in the order in which it is stored."""
        ld = n if ld is None else ld
        core = MessageLayout.triangle(n, ld, lower, _is_fortran(order), diagonal, cls(of).core)
        return cls(core)

    @classmethod
    def from_mpi(cls, datatype: Datatype) -> Layout:
        """What an `mpi4py.MPI.Datatype` describes, elements, places and extent."""
        from .from_mpi import layout_of

        return cls(layout_of(datatype))

    def resized(self, lower: int, extent: int) -> Layout:
        """The same elements with another lower bound and extent, in bytes."""
        return Layout(MessageLayout.resized(self.core, lower, extent))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.core.bytes

    @property
    def count(self) -> int:
        """Elements."""
        return self.core.count

    @property
    def extent(self) -> int:
        """Bytes from where one begins to where the next one does."""
        return self.core.extent

    @property
    def bounds(self) -> tuple[int, int]:
        """Least offset of a byte, and one past the greatest."""
        return self.core.bounds

    @property
    def overlapping(self) -> bool:
        """Whether a byte belongs to several elements: such a layout only sends."""
        return self.core.overlapping

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements; bytes if they are of several types."""
        return dtype_of(self.core.type)

    def pack(self, array: NDArray, out: NDArray | None = None) -> NDArray:
        """The elements of `array` side by side, as bytes.

        Raises
        ------
        InvalidArgument
            If the layout reaches beyond the memory of `array`, or `out` has another size.
        """
        source = self.address_in(np.asarray(array), "pack")
        if out is None:
            out = np.empty(self.nbytes, dtype=np.uint8)
        into = _as_bytes(out, "pack")
        if into.size != self.nbytes:
            raise InvalidArgument(f"pack: out has {into.size} bytes; expected {self.nbytes}")
        self.core.pack(source, 0, into)
        return out

    def unpack(
        self,
        data: bytes | bytearray | memoryview | NDArray,
        out: NDArray,
        operation: Operation | None = None,
    ) -> NDArray:
        """Writes packed bytes to the elements of `out`, or combines them with what is there.

        `operation` is one of MPI's (sum, prod, min, max, land, lor, lxor, band, bor, bxor) or
        a function of two arrays, what is there and what arrives.

        Raises
        ------
        InvalidArgument
            If elements overlap, `data` has another size, `out` can't be written, or the layout
            reaches beyond its memory.
        """
        if not out.flags.writeable:
            raise InvalidArgument("unpack: out can't be written")
        place = self.address_in(out, "unpack")
        arriving = _as_bytes(np.frombuffer(data, dtype=np.uint8), "unpack")
        if arriving.size != self.nbytes:
            raise InvalidArgument(f"unpack: {arriving.size} bytes; expected {self.nbytes}")
        if callable(operation):
            arriving = self._combined(operation, out, arriving)
            operation = None
        self.core.unpack(place, 0, arriving, operation or "")
        return out

    def _combined(
        self, operation: Callable[[NDArray, NDArray], NDArray], out: NDArray, data: NDArray
    ) -> NDArray:
        if not self.core.type:
            raise InvalidArgument(f"unpack: a reduction takes elements of one type, not {self}")
        there = self.pack(out).view(self.dtype)
        result = np.asarray(operation(there, data.view(self.dtype)), dtype=self.dtype)
        if result.shape != there.shape:
            raise InvalidArgument(
                f"unpack: the operation returned shape {result.shape}; expected {there.shape}"
            )
        return np.ascontiguousarray(result).view(np.uint8)

    def address_in(self, array: NDArray, caller: str) -> int:
        """The address of the first element, if all that the layout reaches is the array's."""
        address = address_of(array)
        self.check_within(range(*reach_of(array)), address, caller)
        return address

    def check_within(self, memory: range, address: int, caller: str) -> None:
        """Refuse a layout that reaches beyond some memory from the address of its first element."""
        first, last = self.bounds
        if self.nbytes and (address + first < memory.start or address + last > memory.stop):
            raise InvalidArgument(
                f"{caller}: the layout reaches bytes {first} to {last} from the first element; "
                f"the array's memory is {memory.start - address} to {memory.stop - address}"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.core.equals(other.core)

    def __hash__(self) -> int:
        return self.core.hash()

    def __reduce__(self) -> tuple[Any, ...]:
        return _decoded, encoded_layout(self.core)

    def __repr__(self) -> str:
        return f"Layout({self.core.text})"


def _decoded(given: bytes, period: int, elements: int) -> Layout:
    """A layout that was pickled, by a machine of the same byte order; nothing is believed."""
    return Layout(decoded_layout(given, period, elements))


def _is_fortran(order: str) -> bool:
    if order not in ("C", "F"):
        raise InvalidArgument(f"layout: order is {order!r}; expected 'C' or 'F'")
    return order == "F"


def _integers(given: Any, what: str) -> list[int]:
    """One number or a list of them; a mask, or what would be cut to integers, is a mistake."""
    numbers = np.asarray(given)
    if numbers.size == 0:
        numbers = numbers.astype(np.int64)
    if numbers.dtype.kind not in "iu" or numbers.ndim > 1:
        raise InvalidType(
            f"layout: {what} are {numbers.dtype} of shape {numbers.shape}; "
            "expected integers in one dimension"
        )
    return numbers.reshape(-1).tolist()


def _as_bytes(array: NDArray, caller: str) -> NDArray:
    if not array.flags.c_contiguous:
        raise InvalidArgument(f"{caller}: packed bytes must lie side by side")
    return array.reshape(-1).view(np.uint8)
