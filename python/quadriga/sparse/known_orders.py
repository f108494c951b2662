# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/known_orders.py: orders of patterns that were ordered before.
"""The orders found last, so that another solver of the same pattern needn't find them again."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from .matrices import Csr
from .ordering import Ordering

Find = Callable[[Csr, int], Ordering]

#: An order takes a word for each row: less than a vector.
_MOST_ORDERS = 8


class KnownOrders:
    """By what finds them and the whole pattern, which each question reads once. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: OrderedDict[bytes, Ordering] = OrderedDict()

    def order(self, find: Find, matrix: Csr, unknowns: int) -> Ordering:
        """What `find(matrix, unknowns)` returns, or has returned for this pattern."""
        key = _digest(find, matrix, unknowns)
        with self._lock:
            if key in self._orders:
                self._orders.move_to_end(key)
                return self._orders[key]
        found = find(matrix, unknowns)
        with self._lock:
            self._orders[key] = found
            if len(self._orders) > _MOST_ORDERS:
                self._orders.popitem(last=False)
        return found


def _digest(find: Find, matrix: Csr, unknowns: int) -> bytes:
    """Of all that an order depends on: values aren't among it."""
    kind = f"{find.__name__} {unknowns} {matrix.shape} {matrix.columns.dtype}"
    digest = hashlib.blake2b(kind.encode(), digest_size=32)
    digest.update(np.ascontiguousarray(matrix.offsets).data)
    digest.update(np.ascontiguousarray(matrix.columns).data)
    return digest.digest()


#: Of this process.
known_orders = KnownOrders()
