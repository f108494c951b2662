# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/ordering.py: rows in an order in which neighbours stand close together.
"""Orders of rows and columns, undone in results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgument
from ..machine import Machine
from .matrices import Csr, need_scipy
from .metis import partition

Array = npt.NDArray[Any]
#: Bytes that a core reads from memory for one element that isn't near the last.
_CACHE_LINE = 64
#: Of METIS, however many devices there are, so that results don't depend on these: more than a host
#: has, and a power of two.
_PARTS = 64
#: The link that all routes from the host cross where descriptions know the rate of its memory.
_HOST_MEMORY = "host-memory"


class Ordering:
    """A permutation of rows and columns: place i of the new order is row `places[i]`."""

    def __init__(self, places: Array) -> None:
        self._places = places

    def forth(self, vectors: Array) -> Array:
        """A vector, or vectors by columns, in the new order."""
        found: Array = vectors[self._places]
        return found

    def back(self, vectors: Array, out: Array | None = None) -> Array:
        """The same in the old one."""
        found = np.empty_like(vectors) if out is None else out
        found[self._places] = vectors
        return found

    def matrix(self, given: Csr) -> Csr:
        """Rows in the new order, then columns by their new numbers; those of a row unsorted."""
        rows = _as_array(given)[self._places]
        numbers = np.empty_like(self._places)
        numbers[self._places] = np.arange(numbers.size, dtype=numbers.dtype)
        offsets = rows.indptr.astype(given.offsets.dtype, copy=False)
        columns = numbers[rows.indices].astype(given.columns.dtype, copy=False)
        return Csr(given.shape, offsets, columns, rows.data)


def reverse_cuthill_mckee(matrix: Csr, unknowns: int = 0) -> Ordering:
    """The ordering of a symmetric pattern that brings elements near to the diagonal.

    Nodes of so many rows, if these are known, stay together. Cuthill and McKee, 1969; reversed as
    by George.
    """
    graph = _graph(matrix, unknowns)
    from scipy.sparse import csgraph

    return _of_nodes(csgraph.reverse_cuthill_mckee(graph, symmetric_mode=True), unknowns)


def by_partition(matrix: Csr, unknowns: int = 0) -> Ordering:
    """Rows by the parts of METIS that they are in, in their old order within each.

    There are always as many parts, a power of two, and halves of their numbers are halves of the
    graph: 2, 4 and so on consecutive ranges of equal bytes end where METIS cuts.
    """
    graph = _graph(matrix, unknowns)
    weights = np.maximum(1, np.diff(graph.indptr))
    graph.data = np.ones_like(graph.data, np.int8)
    both = (graph + graph.T).tocoo()
    is_edge = both.row != both.col
    edges, nodes = both.col[is_edge], graph.shape[0]
    counts = np.bincount(both.row[is_edge], minlength=nodes)
    edges = edges[np.argsort(both.row[is_edge], kind="stable")]
    offsets = np.concatenate(([0], np.cumsum(counts)))
    parts = partition(offsets, edges, weights, min(_PARTS, 1 << max(0, nodes.bit_length() - 1)))
    return _of_nodes(np.argsort(parts, kind="stable"), unknowns)


def _graph(matrix: Csr, unknowns: int) -> Any:
    """The pattern of a matrix, or of its blocks where nodes have several rows."""
    array = _as_array(matrix)
    if unknowns <= 1:
        return array
    from scipy.sparse import csr_array

    nodes = matrix.shape[0] // unknowns
    blocks = array.tobsr(blocksize=(unknowns, unknowns))
    return csr_array(
        (np.ones(blocks.indices.size, np.int8), blocks.indices, blocks.indptr), (nodes, nodes)
    )


def _of_nodes(order: Array, unknowns: int) -> Ordering:
    if unknowns <= 1:
        return Ordering(order)
    return Ordering((order[:, None] * unknowns + np.arange(unknowns, dtype=order.dtype)).ravel())


def seconds_to_order(matrix: Csr, machine: Machine) -> float:
    """How long ordering and storing again should take: bytes by the rate of one core.

    No clock is read, so that the same matrix and description give the same choice. Visiting an
    element's neighbour and looking up its new number are cache lines from anywhere; the ordered
    matrix is written and sent. Infinite where no link leads from the host.
    """
    stored = matrix.values.nbytes + matrix.columns.nbytes + matrix.offsets.nbytes
    moved = 2 * _CACHE_LINE * matrix.values.size + 2 * stored
    rate = _core_rate(machine)
    return moved / rate if rate > 0 else math.inf


def _core_rate(machine: Machine) -> float:
    """Bytes a second that a core moves: its share of the host's memory, or the slowest link's.

    0 where no link leads from the host.
    """
    rates = [route.bytes_per_second for route in machine.routes if route.source == "host"]
    cores = sum(node.cores for node in machine.nodes) or sum(each.cores for each in machine.devices)
    for link in machine.links:
        if link.name == _HOST_MEMORY and cores > 0:
            rates.append(link.bytes_per_second / cores)
    return min(rates, default=0.0)


def lost_seconds(plan: dict[str, Any]) -> float:
    """By how much a product is longer than one without exchange, as predicted; 0 without rates."""
    models = plan["models"]
    ways = ("overlapped_seconds" if each else "in_turn_seconds" for each in plan["overlaps"])
    longest = max((part[way] for part, way in zip(models, ways, strict=False)), default=0.0)
    return longest - max((float(part["compute_seconds"]) for part in models), default=0.0)


def _as_array(matrix: Csr) -> Any:
    """SciPy's, checked: what it does with columns out of range is undefined."""
    need_scipy("an ordering")
    from scipy.sparse import csr_array

    try:
        found = csr_array((matrix.values, matrix.columns, matrix.offsets), shape=matrix.shape)
        found.check_format()
    except ValueError as error:
        raise InvalidArgument(f"A: {error}") from error
    return found
