# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/blas.py: NumPy and SciPy compute on one thread while a task's body runs.
"""Limits other BLAS libraries to one thread while bodies run, since tasks already use all cores.

NumPy's and SciPy's BLAS aren't the engine's: each wheel brings its own, with a number of threads
for the whole process. The first body that begins sets it to one, the last that ends restores it.
The engine's own has one from the first body or task on, which is what is restored.
"""

from __future__ import annotations

import ctypes
import os
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


class _Others:
    """Libraries that have no functions of their own for it; a context that many threads enter."""

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def limit(self) -> None:
        """One thread each, until `restore`."""
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                _take_over()
                self._limit = self._controller.limit(limits=1, user_api="blas")

    def restore(self) -> None:
        """As many as before."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._limit is not None:
                _take_over()
                self._limit.restore_original_limits()
                _take_over()
                self._limit = None


def find() -> tuple[list[tuple[int, int]], _Others | None]:
    """The process's BLAS libraries: addresses of functions that tell and set a number of threads,
    which is quick, and the others; called by the extension whenever modules were imported since.
    """
    controller = ThreadpoolController()
    found = [each for each in controller.lib_controllers if each.user_api == "blas"]
    # Setting numbers through threadpoolctl takes 10 us, as long as many a task.
    quick = {each.filepath: functions for each in found if (functions := _functions(each))}
    others = [each.filepath for each in found if each.filepath not in quick]
    return list(quick.values()), _Others(controller.select(filepath=others)) if others else None


def _functions(library: Any) -> tuple[int, int] | None:
    """Addresses of what tells and what sets a library's number of threads; None if not by these."""
    if not isinstance(library, OpenBLASController) or library.threading_layer == "openmp":
        return None
    functions = [library._get_symbol(f"openblas_{verb}_num_threads") for verb in ("get", "set")]
    if None in functions:
        return None
    get, put = (ctypes.cast(each, ctypes.c_void_p).value or 0 for each in functions)
    return get, put


class _OneThread:
    """A context that may be entered by many threads at once."""

    def __enter__(self) -> None:
        _core.begin_one_blas_thread()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _core.end_one_blas_thread()


#: Around every function of the user's that an engine calls from Python; around bodies it is there.
one_thread = _OneThread()
# Bodies that run when a process forks don't run in the child.
os.register_at_fork(after_in_child=_core.forget_blas_threads)
