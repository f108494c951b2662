# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/homeward.py: what a program computed on GPUs comes to the host while it goes on.
"""Results of a program on their way to the host.

A thread waits until the program's stream has passed what makes a result; then the engine copies it
over the link while the program computes. Nothing of this waits in the program's thread.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from .codelets import Codelet
from .data import Data
from .engine import Engine
from .errors import InvalidArgument
from .foreign import DeviceArray, seen
from .future import Future

Passed = Callable[[], object]


class Arriving:
    """A result on its way to the host."""

    def __init__(self, array: Any, target: np.ndarray[Any, Any]) -> None:
        self._array: Any = array  # kept until it has arrived
        self._target = target
        self._begun = threading.Event()
        self._settling = threading.Lock()
        self._error: BaseException | None = None
        self._copies: tuple[Future, Data] | None = None

    def result(self, timeout: float | None = None) -> np.ndarray[Any, Any]:
        """The array on the host, once it is there.

        Raises
        ------
        TimeoutError
            After `timeout` seconds.
        Exception
            What kept it from coming.
        """
        if not self._begun.wait(timeout):
            raise TimeoutError("the result isn't on its way yet")
        copies = self._copies
        if copies is not None:
            copies[0].exception(timeout)
        self.settle()
        if self._error is not None:
            raise self._error
        return self._target

    def has_come(self) -> bool:
        """Whether its copy has ended, so that settle() is quick."""
        copies = self._copies
        return copies is None or copies[0].done()

    def settle(self) -> None:
        """Wait for it, and let go of the array on the device; by any thread."""
        with self._settling:
            if self._copies is None:
                return
            try:
                self._copies[0].result()
                self._copies[1].wait()
            except BaseException as error:
                self._error = error
            self._copies = None
            self._array = None

    def send(self, engine: Engine, copy: Codelet, device: int, passed: Passed) -> None:
        """Queue its copies, when all has passed that makes it; never raises."""
        try:
            passed()
            source, target = engine.data(self._array), engine.data(self._target)
            done = engine.submit(copy, source.read(), target.write(), device=device)
            target.final()
            self._copies = done, target
        except BaseException as error:
            self._error = error
        self._begun.set()


class Sender:
    """The thread that waits for results. It starts with the first."""

    def __init__(self, engine: Engine, copy: Codelet) -> None:
        self._engine = engine
        self._copy = copy
        self._given: queue.SimpleQueue[tuple[Arriving, int, Passed] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def send(self, array: Any, mark: Callable[[int], Passed]) -> Arriving:
        """Begin; called by the program's thread, whose current stream makes the array."""
        there = seen(array)
        if not isinstance(there, DeviceArray):
            found = Arriving(None, np.array(there))
            found._begun.set()
            return found
        found = Arriving(array, np.empty(there.shape, there.dtype))
        if there.size == 0:
            found._begun.set()
            return found
        device = self._engine.core.device_of(there.address)
        if device is None:
            raise InvalidArgument("to_host(): the array lies on no device of the engine")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="quadriga-home", daemon=True)
            self._thread.start()
        self._given.put((found, device, mark(device)))
        return found

    def close(self) -> None:
        """What was given arrives; nothing more will be."""
        if self._thread is not None:
            self._given.put(None)
            self._thread.join()

    def _run(self) -> None:
        coming: deque[Arriving] = deque()
        while (given := self._given.get()) is not None:
            arriving, device, passed = given
            arriving.send(self._engine, self._copy, device, passed)
            coming.append(arriving)
            while coming and coming[0].has_come():
                coming.popleft().settle()
        for each in coming:
            each.settle()
