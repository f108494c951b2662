# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/sparse/columns.py: several right-hand sides, each by its own iteration, whose
# products are computed together.
"""One product for all columns of iterations that know of one column each.

A thread runs the iteration of a column, then that of the next column that nobody has begun, so that
there are never more than `_MOST_THREADS`. One that needs a product waits until all others need one
too or have ended; the last to come computes it for all that wait.

Invariants
----------
1. `_changed` guards all members.
2. A product is computed only while every thread that hasn't ended waits for it.
3. After a failure nobody waits: products raise `_Ended`, no column is begun, and the failure is
   raised by `run`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


#: As many columns as share a product at most: the matrix's share of what one reads is small then.
_MOST_THREADS = 32


class _Ended(BaseException):
    """Another column failed."""


class Columns:
    """Columns, and the product of a matrix of shape (n, k) for those that wait."""

    def __init__(self, product: Callable[[Array], Array]) -> None:
        self._product = product
        self._changed = threading.Condition()
        self._running = 0
        self._begun = 0
        self._wanted: dict[int, Array] = {}
        self._found: dict[int, Array] = {}
        self._failure: BaseException | None = None
        self._guests = threading.Lock()

    def run(self, count: int, work: Callable[[int], Any]) -> list[Any]:
        """What `work(column)` returns, for so many; the first failure of one is raised."""
        results: list[Any] = [None] * count

        def run_columns() -> None:
            try:
                while (column := self._next(count)) is not None:
                    results[column] = work(column)
            except _Ended:
                pass
            except BaseException as error:
                self._fail(error)
            with self._changed:
                self._running -= 1
                self._multiply_if_all_wait()

        self._running, self._begun = min(count, _MOST_THREADS), 0
        threads = [
            threading.Thread(target=run_columns, name=f"columns {each}")
            for each in range(self._running)
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

    def _next(self, count: int) -> int | None:
        """A column that nobody has begun; None: there is none, or one failed."""
        with self._changed:
            column = self._begun
            if column >= count or self._failure is not None:
                return None
            self._begun += 1
            return column

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
