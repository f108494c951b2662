# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/record.py: a task of Python's from its submission to its end.
"""Tasks from Python: what the engine calls when they run, and how they ended."""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .codelets import Codelet
from .cuda_source import CudaSource, refuse_backwards
from .data import Operand
from .division import Division, FineTask
from .errors import Cancelled, InvalidType
from .failures import Failures, is_asked, raise_kept, set_member
from .given import Given, Lacking, Promised, Result, holds_futures
from .layout import Layout
from .per_stream import inside
from .place import Place
from .registered import ContentLost
from .results import causes_of, own_arguments, owned, refuse_kept

if TYPE_CHECKING:

    class _Members:
        """What C++ makes of a number, a codelet, operands and parameters, and then calls take()."""

        number: int
        codelet: Codelet
        # Of its operands; not the data themselves, for those hold the engine, which holds this.
        places: tuple[Place, ...]
        access: tuple[str, ...]
        parameters: Mapping[str, Any]
        given: Given | None  # results of other tasks among what it is called with
        core: _core.Future | None
        launch: _core.LaunchPlan | None
        failures: Failures | None
        result: weakref.ref[Result] | None  # of whoever can read it
        # How it ended, once that is known: `error`, None if well.
        settled: bool
        thread: int  # that has begun to run its body; 0: none
        error: BaseException | None
        exception: BaseException | None  # what its body raised
        started: bool
        withdrawn: Cancelled | None  # its future cancelled it before it started
        division: Division | None  # its fine tasks, if it was divided

        def __init__(
            self,
            number: int,
            codelet: Codelet,
            operands: Sequence[Any],
            parameters: Mapping[str, Any],
        ) -> None: ...

        def begin(self) -> bool:
            """Note that the body is about to be called; false if the task is withdrawn."""

        def drop(self) -> None:
            """Release the operands of an ended task."""

        def withdraw_as(self, error: Cancelled) -> bool:
            """Withdraw the task; false if it has started, or no Python is called."""

else:
    _Members = _core.TaskRecord  # members of C's cost a task less than Python's do


class Record(_Members):
    """A task from its submission to its end; keeps alive what its body needs."""

    __slots__ = ()

    def take(self, operands: Sequence[Operand]) -> None:
        """Take operands and parameters that need a look; called by C++ for a new record."""
        codelet, parameters = self.codelet, self.parameters
        if not isinstance(codelet, Codelet):
            raise InvalidType(
                f"codelet is {codelet!r}; expected a Codelet, which quadriga.codelet(access=...) "
                "makes from a function"
            )
        for index, operand in enumerate(operands):
            if not isinstance(operand, (Operand, Promised)):
                raise InvalidType(
                    f"operand {index} of codelet '{codelet.name}' is {type(operand).__name__}; "
                    "expected data and a mode of access, as engine.data(array).read() or .update() "
                    "(pass other values by name)"
                )
        self.access_only([each for each in operands if isinstance(each, Operand)])
        if len(self.places) < len(operands) or (parameters and holds_futures(parameters)):
            self.given = Given(codelet, operands, parameters)

    def access_only(self, operands: Sequence[Operand]) -> None:
        """Set its places and how it accesses them."""
        self.places = tuple(each.data.place for each in operands)
        self.access = tuple(each.access for each in operands)

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
        error = Cancelled(f"task {self.id} '{self.codelet.name}' was cancelled")
        error.asked = True
        if not self.withdraw_as(error):
            return False
        self.settle(error)
        return True

    def _start(self) -> None:
        if not self.begin():
            assert self.withdrawn is not None
            if self.failures is not None:
                self.failures.note(self.number, self.withdrawn)
            raise self.withdrawn

    def _lacking(self) -> int | None:
        assert self.given is not None
        try:
            return self.given.lacking()
        except Cancelled as error:  # a failure of another engine's
            self.note_failure(error)
            raise

    def prepare_for_cuda(self) -> None:
        """What needs Python, or fails, before an engine with CUDA devices gets the task."""
        codelet = self.codelet
        layouts = [place.layout for place in self.places]
        if not isinstance(codelet.cuda, CudaSource):
            refuse_backwards(codelet.name, layouts)
            if codelet.arrays is not None:
                _ = codelet.arrays.module
        elif self.given is None:  # else its values come too late, and the body runs on the host
            self.launch = codelet.cuda.plan(codelet.name, layouts, codelet.access, self.parameters)

    def divide(self, places: tuple[tuple[int, int], ...]) -> Sequence[FineTask]:
        """The fine tasks of this one where its operands are; called by the engine.

        There are none where an operand isn't where its array is: that memory ends with the task.
        """
        if self.given is not None:
            return []
        tiles: list[tuple[Any, Layout, int, int]] = []
        for place, access, (address, ld) in zip(self.places, self.access, places, strict=True):
            if not place.is_at(address):
                return []
            tiles.append((place.view(address, ld, access), place.layout, address, ld))
        self._start()
        assert self.codelet.divide is not None
        self.division = Division.of(self.codelet, tiles)
        self.codelet.divide(self.division, *[tile[0] for tile in tiles], **self.parameters)
        return self.division.tasks

    def run(self, places: tuple[tuple[int, int], ...]) -> int | None:
        """Call the body on the operands where they are; called by the engine, where C++
        doesn't call the body itself.

        Returns
        -------
        int or None
            The task that failed and whose result it lacks: then the body was not called.
        """
        body = self.codelet.cpu
        assert body is not None
        self._start()
        if self.given is not None and (lacking := self._lacking()) is not None:
            return lacking
        views: list[Any] = []
        memories: list[Any] = []  # Of views that end with the task; an array's own memory stays.
        for place, access, (address, ld) in zip(self.places, self.access, places, strict=True):
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
            held.clear()
            refuse_kept(f"codelet '{self.codelet.name}'", "an operand", memories)
        except BaseException as exception:
            views.clear()
            raise_kept(self._fail(exception, places, memories, ended=bool(memories)))
        return None

    def run_on_device(
        self, places: tuple[tuple[int, int], ...], stream: int, device: int
    ) -> int | None:
        """Call the callable for CUDA devices, which queues on a stream; called by the engine."""
        function, arrays = self.codelet.cuda, self.codelet.arrays
        assert callable(function)
        assert arrays is not None
        self._start()
        if self.given is not None and (lacking := self._lacking()) is not None:
            return lacking
        views: list[Any] = []
        parameters = self.parameters
        try:
            with arrays.on_stream(stream, device), inside(stream, device):
                views += [
                    arrays.view(place.layout, address, ld, device)
                    for place, (address, ld) in zip(self.places, places, strict=True)
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
            raise_kept(self._fail(exception, places, [], ended=True))
        return None

    def _keep(
        self, held: list[Any], places: tuple[tuple[int, int], ...], memories: list[Any]
    ) -> None:
        """The result, if anybody can read it, as the reader's own."""
        result = self.result() if self.result is not None else None
        if held[0] is None or result is None:
            return
        try:
            result.value = owned(held, self._places(places), memories, self._own())
        except InvalidType as error:
            raise InvalidType(f"codelet '{self.codelet.name}' can't return that: {error}") from None

    def keep_result(self, held: list[Any]) -> None:
        """The same for a body whose operands were where their arrays are; called by C++."""
        self._keep(held, self._in_place(), [])

    def fail_in_place(self, exception: BaseException) -> None:
        """Such a body, or that of a fine task, raised; called by C++."""
        self._fail(exception, self._in_place(), [], ended=False)

    def _in_place(self) -> tuple[tuple[int, int], ...]:
        return tuple((place.address or 0, place.layout.ld) for place in self.places)

    def note_failure(self, exception: BaseException) -> None:
        """The task fails by this exception, if by none before."""
        if self.exception is not None:
            return
        if is_asked(exception) and exception is not self.withdrawn:
            # Another task was cancelled, which the program knows; that this one failed it doesn't.
            exception = Cancelled(f"codelet '{self.codelet.name}' failed: {exception}")
        self.exception = exception
        if self.failures is not None:
            self.failures.note(self.number, exception)

    def _fail(
        self,
        exception: BaseException,
        places: tuple[tuple[int, int], ...],
        memories: list[Any],
        ended: bool,
    ) -> BaseException:
        """What the task fails with, which refers to no operand."""
        if ended:
            # Frames must not keep views of memory that the engine takes back.
            for each in causes_of(exception):
                traceback.clear_frames(each.__traceback__)
        own_arguments(exception, self._places(places), memories, self._own())
        failure = exception
        try:
            refuse_kept(f"codelet '{self.codelet.name}'", "an operand", memories)
        except InvalidType as kept:
            set_member(kept, "__cause__", exception)
            failure = kept
        self.note_failure(failure)
        return failure

    def _own(self) -> tuple[Any, ...]:
        """What leads to the program's own objects, which may hold operands."""
        return self.codelet.cpu, self.codelet.cuda, *self.parameters.values()

    def _places(self, places: tuple[tuple[int, int], ...]) -> list[tuple[Layout, int, int]]:
        return [
            (place.layout, address, ld)
            for place, (address, ld) in zip(self.places, places, strict=True)
        ]


def lacking(number: int, codelet: Codelet, operands: Sequence[Any], lost: ContentLost) -> Record:
    """The record of a task that is given what a failed one should have written: it won't run."""
    own = [each for each in operands if not isinstance(each, Promised)]
    record = Record(number, codelet, own, {})
    record.given = Lacking(codelet, operands, lost)
    return record
