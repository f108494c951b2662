# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/record.py: a task of Python's from its submission to its end.
"""Tasks from Python: what the engine calls when they run, and how they ended."""

from __future__ import annotations

import os
import threading
import traceback
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from .codelets import Codelet
from .cuda_source import CudaSource
from .data import Operand
from .errors import Cancelled, InvalidType
from .failures import Failures
from .given import Given, Promised, Result, holds_futures
from .layout import Layout
from .per_stream import inside
from .place import Place
from .results import own_arguments, owned

_starting = threading.Lock()  # whether a body starts or is cancelled before


def _begin_child() -> None:
    """After fork(): the thread that held the lock isn't in the child."""
    global _starting
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_begin_child)


class Record:
    """A task from its submission to its end; keeps alive what its body needs."""

    __slots__ = (
        "codelet", "core", "error", "exception", "failures", "given", "launch", "number",
        "operands", "parameters", "result", "settled", "started", "withdrawn",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        codelet: Codelet,
        operands: Sequence[Operand],
        parameters: Mapping[str, Any],
    ) -> None:
        if not isinstance(codelet, Codelet):
            raise InvalidType(
                f"codelet is {codelet!r}; expected a Codelet, which quadriga.codelet(access=...) "
                "makes from a function"
            )
        #: Results of other tasks among what it is called with.
        self.given: Given | None = None
        # Not the data themselves, for those hold the engine, which holds this.
        self.operands: list[tuple[Place, str]] = []
        for index, operand in enumerate(operands):
            if isinstance(operand, Operand):
                self.operands.append((operand.data.place, operand.access))
            elif not isinstance(operand, Promised):
                raise InvalidType(
                    f"operand {index} of codelet '{codelet.name}' is {type(operand).__name__}; "
                    "expected data and how it is touched, as engine.data(array).read() or .update()"
                )
        if len(self.operands) < len(operands) or (parameters and holds_futures(parameters)):
            self.given = Given(codelet, operands, parameters)
        self.number = number
        self.codelet = codelet
        self.parameters = parameters
        self.core: _core.Future | None = None
        self.launch: _core.LaunchPlan | None = None
        self.exception: BaseException | None = None
        self.failures: Failures | None = None
        #: Of whoever can read it.
        self.result: weakref.ref[Result] | None = None
        #: How it ended, once that is known: `error`, None if well.
        self.settled = False
        self.error: BaseException | None = None
        self.started = False
        self.withdrawn: Cancelled | None = None  # its future cancelled it before it started

    @property
    def submitted(self) -> _core.Future:
        """The engine's own future."""
        assert self.core is not None
        return self.core

    @property
    def id(self) -> int:
        """The task's number in order of submission."""
        return self.submitted.id

    @property
    def is_watched(self) -> bool:
        """Whether somebody can ask how it ended."""
        return self.result is not None and self.result() is not None

    def settle(self, error: BaseException | None) -> None:
        """It is known how the task ended."""
        if not self.settled:
            self.error = error
            self.settled = True

    def withdraw(self) -> bool:
        """Keep the body from being called; false if it is too late, or no Python is called."""
        with _starting:
            if self.started or self.launch is not None:
                return False
            self.withdrawn = Cancelled(f"task {self.id} '{self.codelet.name}' was cancelled")
            self.withdrawn.asked = True
        self.settle(self.withdrawn)
        return True

    def _start(self) -> None:
        with _starting:
            self.started = True
        if self.withdrawn is not None:
            if self.failures is not None:
                self.failures.note(self.number, self.withdrawn)
            raise self.withdrawn

    def prepare_for_cuda(self) -> None:
        """What needs Python, or fails, before an engine with CUDA devices gets the task."""
        codelet = self.codelet
        if isinstance(codelet.cuda, CudaSource):
            if self.given is not None:
                return  # its values come too late for a launch: the body runs on the host
            layouts = [place.layout for place, _ in self.operands]
            self.launch = codelet.cuda.plan(codelet.name, layouts, codelet.access, self.parameters)
        elif codelet.arrays is not None:
            _ = codelet.arrays.module

    def run(self, places: tuple[tuple[int, int], ...]) -> int | None:
        """Call the body on the operands where they are; called by the engine.

        Returns
        -------
        int or None
            The task that failed and whose result it lacks: then the body was not called.
        """
        body = self.codelet.cpu
        assert body is not None
        self._start()
        if self.given is not None and (lacking := self.given.lacking()) is not None:
            return lacking
        views: list[Any] = []
        memories: list[Any] = []  # Of views that end with the task; an array's own memory stays.
        for (place, access), (address, ld) in zip(self.operands, places, strict=True):
            views.append(place.view(address, ld, access))
            if not place.is_at(address) and views[-1].size:
                memories.append(views[-1].base)
        parameters = self.parameters
        try:
            if self.given is not None:
                views = self.given.operands(views)
                parameters = self.given.parameters()
            held = [body(*views, **parameters)]
            views.clear()
            if held[0] is not None:
                self._keep(held, places, memories)
        except BaseException as exception:
            views.clear()
            self._fail(exception, places, memories, ended=bool(memories))
            raise
        return None

    def run_on_device(
        self, places: tuple[tuple[int, int], ...], stream: int, device: int
    ) -> int | None:
        """Call the callable for CUDA devices, which queues on a stream; called by the engine."""
        function, arrays = self.codelet.cuda, self.codelet.arrays
        assert callable(function)
        assert arrays is not None
        self._start()
        if self.given is not None and (lacking := self.given.lacking()) is not None:
            return lacking
        views: list[Any] = []
        parameters = self.parameters
        try:
            with arrays.on_stream(stream, device), inside(stream, device):
                views += [
                    arrays.view(place.layout, address, ld, device)
                    for (place, _), (address, ld) in zip(self.operands, places, strict=True)
                ]
                if self.given is not None:
                    views = self.given.operands(views)
                    parameters = self.given.parameters()
                held = [function(*views, **parameters)]
                views.clear()
                if held[0] is not None:
                    self._keep(held, places, [])
        except BaseException as exception:
            views.clear()
            self._fail(exception, places, [], ended=True)
            raise
        return None

    def _keep(
        self, held: list[Any], places: tuple[tuple[int, int], ...], memories: list[Any]
    ) -> None:
        """The result, if anybody can read it, as the reader's own."""
        result = self.result() if self.result is not None else None
        if held[0] is None or result is None:
            return
        try:
            result.value = owned(held, self._places(places), memories)
        except InvalidType as error:
            raise InvalidType(f"codelet '{self.codelet.name}' can't return that: {error}") from None

    def _fail(
        self,
        exception: BaseException,
        places: tuple[tuple[int, int], ...],
        memories: list[Any],
        ended: bool,
    ) -> None:
        self.exception = exception
        if self.failures is not None:
            self.failures.note(self.number, exception)
        if ended:
            # Frames must not keep views of memory that the engine takes back.
            traceback.clear_frames(exception.__traceback__)
            own_arguments(exception, self._places(places), memories)

    def _places(self, places: tuple[tuple[int, int], ...]) -> list[tuple[Layout, int, int]]:
        return [
            (place.layout, address, ld)
            for (place, _), (address, ld) in zip(self.operands, places, strict=True)
        ]

    def drop(self) -> None:
        """Release the operands of an ended task."""
        self.operands = []
        self.parameters = {}
        self.given = None
        self.launch = None
