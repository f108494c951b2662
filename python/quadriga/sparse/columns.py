# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/columns.py: several right-hand sides, each by its own iteration, whose
# products are computed together.
"""One product for all columns of iterations that know of one column each.

Each column is a thread. One that needs a product waits until all others need one too or have ended;
the last to come computes it for all that wait.

Invariants
----------
1. `_changed` guards all members.
2. A product is computed only while every thread that hasn't ended waits for it.
3. After a failure nobody waits: products raise `_Ended`, and the failure is raised by `run`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class _Ended(BaseException):
    """Another column failed."""


class Columns:
    """So many columns, and the product of a matrix of shape (n, k) for those that wait."""

    def __init__(self, count: int, product: Callable[[Array], Array]) -> None:
        self._product = product
        self._changed = threading.Condition()
        self._running = count
        self._count = count
        self._wanted: dict[int, Array] = {}
        self._found: dict[int, Array] = {}
        self._failure: BaseException | None = None
        self._guests = threading.Lock()

    def run(self, work: Callable[[int], Any]) -> list[Any]:
        """What `work(column)` returns, for all columns; the first failure of one is raised."""
        results: list[Any] = [None] * self._count

        def run_column(column: int) -> None:
            try:
                results[column] = work(column)
            except _Ended:
                pass
            except BaseException as error:
                self._fail(error)
            with self._changed:
                self._running -= 1
                self._multiply_if_all_wait()

        threads = [
            threading.Thread(target=run_column, args=(column,), name=f"column {column}")
            for column in range(self._count)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException as error:  # Ctrl-C
            self._fail(error)
            raise
        if self._failure is not None:
            raise self._failure
        return results

    def multiply(self, column: int, vector: Array) -> Array:
        """The product with a column's vector, by the thread of that column."""
        with self._changed:
            self._wanted[column] = np.ravel(vector)
            self._multiply_if_all_wait()
            while column not in self._found and self._failure is None:
                self._changed.wait()
            if self._failure is not None:
                raise _Ended
            return self._found.pop(column).reshape(vector.shape)

    def alone(self, call: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """A function of the caller's that no two threads call at once."""

        def guarded(vector: Array) -> Array:
            with self._guests:
                return call(vector)

        return guarded

    def _multiply_if_all_wait(self) -> None:
        if not self._wanted or len(self._wanted) < self._running or self._failure is not None:
            return
        columns = list(self._wanted)
        try:
            together = self._product(np.stack([self._wanted[each] for each in columns], axis=1))
            self._found = {each: together[:, i].copy() for i, each in enumerate(columns)}
        except BaseException as error:
            self._failure = error
        self._wanted = {}
        self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()
