# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/metis.py: METIS's partition of a graph, by its shared library.
"""The library is Debian's `libmetis5`, or what PyPI's `cmeel-metis` installs.

G. Karypis and V. Kumar, A fast and high quality multilevel scheme for partitioning irregular
graphs, SIAM J. Sci. Comput. 20(1), 1998.
"""

from __future__ import annotations

import ctypes
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Error, InvalidArgument, Unavailable

Array = npt.NDArray[Any]
_OK = 1
_OPTIONS = 40


def partition(offsets: Array, neighbours: Array, weights: Array, parts: int) -> Array:
    """The part of each node of a graph, by recursive bisection.

    A half of the parts' numbers is a half of the graph, and so on: for 4 parts, 0 and 1 are
    together one of 2 parts.

    Parameters
    ----------
    offsets, neighbours : ndarray
        The graph by compressed rows: symmetric, without loops.
    weights : ndarray
        Of nodes, 1 or more; parts are of about equal sums.
    parts : int

    Raises
    ------
    Unavailable
        If the library isn't installed.
    InvalidArgument
        If the graph has more edges than the library's integers can count.
    """
    library, integer = _library()
    if max(neighbours.size, int(weights.sum())) > np.iinfo(integer).max:
        raise InvalidArgument(
            f"order is 'metis', and A has {neighbours.size} elements: more than this METIS, with "
            f"integers of {8 * integer.itemsize} bits, can count; expected 'rcm' or None"
        )
    nodes, constraints, wanted, cut = (np.array([n], integer) for n in (weights.size, 1, parts, 0))
    graph = [np.ascontiguousarray(each, integer) for each in (offsets, neighbours, weights)]
    found = np.zeros(weights.size, integer)
    address = [each.ctypes.data_as(ctypes.c_void_p) for each in (nodes, constraints, *graph)]
    end = [each.ctypes.data_as(ctypes.c_void_p) for each in (wanted, cut, found)]
    code = library.METIS_PartGraphRecursive(
        *address, None, None, end[0], None, None, None, *end[1:]
    )
    if code != _OK:
        raise Error(f"METIS_PartGraphRecursive ended with {code}; expected {_OK}")
    return found


@cache
def _library() -> tuple[Any, np.dtype[Any]]:
    """The library, and the type of its integers, which it was built with."""
    library = _load()
    # It sets 40 integers to -1 but for one: twice as many bytes where they have 64 bits.
    options = np.zeros(_OPTIONS, np.int64)
    library.METIS_SetDefaultOptions(options.ctypes.data_as(ctypes.c_void_p))
    is_wide = bool(options[_OPTIONS // 2 :].any())
    return library, np.dtype(np.int64 if is_wide else np.int32)


def _load() -> Any:
    installed = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/lib"
    tried = []
    # PyPI's doesn't find the library that it needs, unless that is loaded already.
    for names in (["libmetis.so.5"], [installed / "libGKlib.so", installed / "libmetis.so"]):
        try:
            return [ctypes.CDLL(str(name)) for name in names][-1]
        except OSError as error:
            tried.append(str(error))
    raise Unavailable(
        "order is 'metis', and its library isn't found; Debian's package libmetis5 or PyPI's "
        f"cmeel-metis has it, order='rcm' needs SciPy alone ({'; '.join(tried)})"
    )
