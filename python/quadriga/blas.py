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


class _Libraries:
    """The BLAS libraries of the process, as far as they are known."""

    def __init__(self) -> None:
        controller = ThreadpoolController()
        found = [each for each in controller.lib_controllers if each.user_api == "blas"]
        quick = {each.filepath: functions for each in found if (functions := _functions(each))}
        # Setting numbers through threadpoolctl takes 10 us, as long as many a task.
        self._quick = _core.BlasThreads(list(quick.values()))
        others = [each.filepath for each in found if each.filepath not in quick]
        self._others = controller.select(filepath=others) if others else None
        self._limit: Any = None

    def limit(self) -> None:
        """One thread each, until `restore`."""
        self._quick.limit()
        if self._others is not None:
            _take_over()
            self._limit = self._others.limit(limits=1, user_api="blas")

    def restore(self) -> None:
        """As many as before."""
        self._quick.restore()
        if self._limit is not None:
            _take_over()
            self._limit.restore_original_limits()
            _take_over()
            self._limit = None


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

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._libraries: _Libraries | None = None
        self._modules = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                _core.use_one_blas_thread()
                # Looking for libraries takes a millisecond: only when modules were imported since.
                if self._libraries is None or self._modules != len(sys.modules):
                    self._modules = len(sys.modules)
                    self._libraries = _Libraries()
                self._libraries.limit()
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
                assert self._libraries is not None
                self._libraries.restore()


#: Around every Python body that an engine calls.
one_thread = _OneThread()
# Bodies that run when a process forks don't run in the child.
os.register_at_fork(after_in_child=one_thread.__init__)  # type: ignore[misc]
