# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/blas.py: NumPy and SciPy compute on one thread while a task's body runs.
"""Tasks share the cores; a BLAS that starts threads in each of them would take them twice.

NumPy's and SciPy's BLAS aren't the engine's: each wheel brings its own, with a number of threads
for the whole process. The first body that begins sets it to one, the last that ends restores it.
The engine's own has one from the first body or task on, which is what is restored.
"""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

from . import _core


def _take_over() -> None:
    """Since version 3.8 threadpoolctl lets one thread set numbers and ignores the others.

    Bodies begin and end in any thread, and the user's own thread may be the one that set them.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


class _OneThread:
    """A context that may be entered by many threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None
        self._controller: Any = None
        self._modules = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                _core.use_one_blas_thread()
                _take_over()
                self._limit = self._libraries().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _take_over()
                self._limit.restore_original_limits()
                _take_over()

    def _libraries(self) -> Any:
        """Looking for libraries takes a millisecond: only when modules were imported since."""
        if self._controller is None or self._modules != len(sys.modules):
            self._controller = ThreadpoolController()
            self._modules = len(sys.modules)
        return self._controller


#: Around every Python body that an engine calls.
one_thread = _OneThread()
# Bodies that run when a process forks don't run in the child.
os.register_at_fork(after_in_child=one_thread.__init__)  # type: ignore[misc]
