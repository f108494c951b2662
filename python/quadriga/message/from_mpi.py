# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/from_mpi.py: layouts of MPI's datatypes, by what they were made of.
"""An MPI datatype names its maker and arguments; the same maker here gives its layout."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np

from .._core import MessageLayout
from ..errors import InvalidArgument
from ..typing import Datatype
from .elements import element_of

Parameters = dict[str, Any]


def layout_of(datatype: Datatype) -> MessageLayout:
    """The layout of an `mpi4py.MPI.Datatype`, with its lower bound and extent.

    Raises
    ------
    InvalidArgument
        If it isn't one, or was made by a maker that isn't known.
    """
    if not hasattr(datatype, "decode") or not hasattr(datatype, "Get_extent"):
        raise InvalidArgument(f"layout: {type(datatype).__name__} is no mpi4py.MPI.Datatype")
    base, maker, parameters = datatype.decode()
    if maker == "NAMED" or maker.startswith("F90_"):
        layout = _named(datatype)
    elif maker == "STRUCT":
        layout = _structure(parameters)
    else:
        make = _MAKERS.get(maker)
        if make is None:
            raise InvalidArgument(f"layout: MPI's maker {maker} isn't known; expected {_known()}")
        layout = make(layout_of(base), parameters)
    lower, extent = datatype.Get_extent()
    return MessageLayout.resized(layout, lower, extent)


def _known() -> str:
    return ", ".join(["NAMED", "STRUCT", *_MAKERS])


def _named(datatype: Any) -> MessageLayout:
    pair = _PAIRS.get(datatype.Get_name())
    if pair is not None:
        return element_of(np.dtype(f"{pair}, i4", align=True))
    code = datatype.typestr
    if code.startswith(("V", "S", "|V", "|S")) or not code:
        return MessageLayout.contiguous(datatype.Get_size(), MessageLayout.element("bytes"))
    return element_of(code)


# What MPI's types of a value and an index are made of.
_PAIRS = {
    "MPI_FLOAT_INT": "f4",
    "MPI_DOUBLE_INT": "f8",
    "MPI_LONG_INT": "i8",
    "MPI_2INT": "i4",
    "MPI_SHORT_INT": "i2",
}


def _structure(p: Parameters) -> MessageLayout:
    fields = [layout_of(each) for each in p["datatypes"]]
    return MessageLayout.structure(p["blocklengths"], p["displacements"], fields)


def _indexed(of: MessageLayout, p: Parameters, in_bytes: bool) -> MessageLayout:
    places = p["displacements"]
    lengths = p.get("blocklengths", [p.get("blocklength")] * len(places))
    return MessageLayout.indexed(lengths, places, in_bytes, of)


def _is_fortran(p: Parameters) -> bool:
    from mpi4py import MPI

    return bool(p["order"] == MPI.ORDER_FORTRAN)


def _subarray(of: MessageLayout, p: Parameters) -> MessageLayout:
    return MessageLayout.subarray(p["sizes"], p["subsizes"], p["starts"], _is_fortran(p), of)


def _darray(of: MessageLayout, p: Parameters) -> MessageLayout:
    grid = p["psizes"]
    # Ranks fill the grid row by row, whatever the array's order is.
    coordinates = [int(each) for each in np.unravel_index(p["rank"], grid)]
    block = [_block(p, axis) for axis in range(len(grid))]
    return MessageLayout.block_cyclic(
        p["gsizes"], block, grid, coordinates, _is_fortran(p), True, of
    )


def _block(p: Parameters, axis: int) -> int:
    """How many elements a process gets before it is the next one's turn."""
    from mpi4py import MPI

    length, processes = p["gsizes"][axis], p["psizes"][axis]
    if p["distribs"][axis] == MPI.DISTRIBUTE_NONE:
        return max(1, int(length))
    if p["dargs"][axis] != MPI.DISTRIBUTE_DFLT_DARG:
        return int(p["dargs"][axis])
    by_blocks = p["distribs"][axis] == MPI.DISTRIBUTE_BLOCK
    return max(1, ceil(length / processes)) if by_blocks else 1


_MAKERS: dict[str, Callable[[MessageLayout, Parameters], MessageLayout]] = {
    "DUP": lambda of, p: of,
    "CONTIGUOUS": lambda of, p: MessageLayout.contiguous(p["count"], of),
    "VECTOR": lambda of, p: MessageLayout.vector(p["count"], p["blocklength"], p["stride"], of),
    "HVECTOR": lambda of, p: MessageLayout.vector_bytes(
        p["count"], p["blocklength"], p["stride"], of
    ),
    "INDEXED": lambda of, p: _indexed(of, p, in_bytes=False),
    "HINDEXED": lambda of, p: _indexed(of, p, in_bytes=True),
    "INDEXED_BLOCK": lambda of, p: _indexed(of, p, in_bytes=False),
    "HINDEXED_BLOCK": lambda of, p: _indexed(of, p, in_bytes=True),
    "SUBARRAY": _subarray,
    "DARRAY": _darray,
    "RESIZED": lambda of, p: MessageLayout.resized(of, p["lb"], p["extent"]),
}
