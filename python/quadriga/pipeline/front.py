# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/front.py: what a run of a pipeline calls: source, bodies, kernels.
"""The side of a run that is Python's; called by threads of the engine, with the GIL held."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .. import _core, mapped
from ..codelets import ACCESSES, Codelet
from ..data import Operand
from ..errors import InvalidArgument, InvalidType
from ..given import Result
from ..host_arrays import empty_of, from_buffers
from ..layout import layout_of, layout_of_new
from ..place import Place
from ..record import Record
from . import returned
from .changed import ChangedFields
from .chunk import Chunk, Seconds, Shape, Through, label_of, require_names
from .fields import NOWHERE, is_array, own, place_of
from .indexed import IndexedSource, given_by
from .lent import Copies, Lent, explain, lending, lending_parts
from .pending import Pending
from .reduction import Reduction, part_of
from .returned import Returned

# A chunk, its fields, bytes that no kernel uses, and the stages that it passes if not all.
Shown = tuple[Chunk, "list[FieldTuple]", int, "list[str] | None"]
FieldTuple = tuple[str, int, int, int, int, _core.DType]


class _OfPart:
    """Takes the failure of a part's kernel, whose task knows the number only."""

    __slots__ = ("front", "label")

    def __init__(self, front: Front, chunk: Chunk) -> None:
        self.front = front
        self.label = chunk.label

    def note(self, _: int, error: BaseException) -> None:
        self.front.note(self.label, error)


class _Parts(NamedTuple):
    """What a flat_map makes of a chunk."""

    iterator: Iterator[Any]
    lent: Lent | Copies | None
    outputs: dict[str, Any]  # of its chunk, for later kernels: each part has its own


class _Held:
    """A place as an operand refers to it."""

    __slots__ = ("place",)

    def __init__(self, place: Place) -> None:
        self.place = place


@dataclass
class KernelUse:
    """One operand of a kernel."""

    name: str
    access: str
    shape: Shape | None = None  # of what it writes
    temporary: bool = False
    constant: np.ndarray[Any, Any] | None = None
    reduction: Reduction | None = None


@dataclass
class Stage:
    """A stage as it was stated."""

    kind: str
    name: str
    function: Callable[..., Any] | None = None
    codelet: Codelet | None = None
    uses: list[KernelUse] = field(default_factory=list)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    filters: bool = False  # the function says whether a chunk goes on
    memory: int = 0  # bytes of what a flat_map makes
    reuses: bool | None = None  # whether a flat_map fills memory again
    seconds: Seconds | None = None  # of a chunk, on the host
    returns: list[Returned] = field(default_factory=list)  # of a kernel, beside its uses


def _tuple_of(name: str, place: Place) -> FieldTuple:
    layout = place.layout
    return (name, place.address or 0, layout.rows, layout.cols, layout.ld, layout.core_dtype)


class Front:
    """A run's source, bodies and kernels.

    Attributes
    ----------
    raised : dict
        What Python raised, by the chunk's label.
    source_error : BaseException or None
    """

    def __init__(
        self,
        source: Iterator[Any] | IndexedSource,
        stages: Sequence[Stage],
        has_cuda: bool,
        seconds: Seconds | None = None,
        buffers: _core.HostBuffers | None = None,
        reuses: bool | None = None,
        pending: Pending | None = None,
    ) -> None:
        self._buffers = buffers
        self._seconds = seconds
        self._pending = pending
        self._source: Iterator[Any] | IndexedSource | None = source
        self._lent = lending(source, reuses, buffers)
        self._lent_parts = {
            i: lending_parts(stage.reuses, buffers) if buffers is not None else None
            for i, stage in enumerate(stages)
            if stage.kind == "flat_map"
        }
        self._stages = stages
        self._has_cuda = has_cuda
        self._used = {use.name for stage in stages for use in stage.uses}
        self._used |= {made.name for stage in stages for made in stage.returns}
        self._changed = {use.name for stage in stages for use in stage.uses if use.access != "read"}
        given = [use for stage in stages for use in stage.uses if use.shape is None]
        self._updated = {use.name for use in given if use.access != "read"}
        # Without buffers nothing runs: an estimate may count one chunk many times.
        self._changed_fields = ChangedFields() if buffers is not None else None
        self._places = {
            use.name: Place(None, layout_of(use.constant), mapped.watch(use.constant), NOWHERE)  # type: ignore[arg-type]
            for stage in stages
            for use in stage.uses
            if use.constant is not None
        }
        self.reductions = {
            use.name: use.reduction
            for stage in stages
            for use in stage.uses
            if use.reduction is not None
        }
        self.raised: dict[str, BaseException] = {}
        self.source_error: BaseException | None = None

    def stages(self) -> list[tuple[Any, ...]]:
        """As the extension takes them."""
        return [
            (
                stage.kind,
                stage.name,
                stage.codelet.core if stage.codelet else None,
                [
                    (
                        use.name,
                        ACCESSES[use.access],
                        use.temporary,
                        None
                        if use.constant is None
                        else _tuple_of(use.name, self._places[use.name]),
                        use.reduction is not None,
                    )
                    for use in stage.uses
                ],
                stage.memory,
                stage.seconds is not None,
                [(made.name, made.most is not None, made.fill.core) for made in stage.returns],
            )
            for stage in self._stages
        ]

    def shown(
        self,
        number: int,
        given: Any,
        parts: tuple[int, ...] = (),
        lent: Lent | Copies | None = None,
        outputs: Mapping[str, Any] = MappingProxyType({}),
    ) -> Shown:
        """A chunk with what kernels will write; `lent`: of whoever made it, `outputs`: not its."""
        names: list[str] | None = None
        if isinstance(given, Through):
            given, names = given.chunk, given.stages
        chunk = Chunk(number, given, parts)
        chunk.drop(outputs)
        if self._pending is not None and not parts:
            self._pending.settle(chunk)
        if lent is not None:
            lent.lend(chunk)
        for each in chunk.values():
            mapped.watch(each)  # host stages read also what no kernel uses
        for stage in self._stages:
            if names is not None and stage.name not in names:
                continue
            for use in stage.uses:
                self._complete(chunk, use)
        fields = self._fields(chunk)
        beside = sum(v.nbytes for k, v in chunk.items() if k not in self._used and is_array(v))
        return chunk, fields, beside, names

    # Called by the run.

    def next(self, number: int) -> Shown | None:
        """The next chunk; None at the end."""
        if self._source is None:
            return None
        try:
            if self._lent is not None:
                self._lent.asked()
            with from_buffers(self._buffers):
                given = given_by(self._source, number)
            return self.shown(number, given, lent=self._lent)
        except StopIteration:
            self.close()
            return None
        except BaseException as error:
            explain(error)
            self.source_error = error
            raise

    def split(self, stage: int, chunk: Chunk) -> _Parts:
        """What a flat_map makes of a chunk."""
        function = self._stages[stage].function
        assert function is not None
        lent = self._lent_parts[stage]
        try:
            if lent is not None:
                lent.asked()
            return _Parts(iter(function(chunk)), lent, self._later_outputs(stage, chunk))
        except BaseException as error:
            self.note(label_of(chunk.number, (*chunk.parts, 0)), error)
            raise

    def _later_outputs(self, stage: int, chunk: Chunk) -> dict[str, Any]:
        before = {use.name for each in self._stages[:stage] for use in each.uses}
        return {name: array for name, array in chunk.outputs.items() if name not in before}

    def part(self, made: _Parts, number: int, parts: tuple[int, ...]) -> Shown | None:
        """The next that it makes; None at the end."""
        try:
            if made.lent is not None:
                made.lent.asked()
            with from_buffers(self._buffers):
                given = next(made.iterator)
            return self.shown(number, given, parts, made.lent, made.outputs)
        except StopIteration:
            return None
        except BaseException as error:
            self.note(label_of(number, parts), error)
            raise

    def call(self, stage: int, chunk: Chunk) -> tuple[bool, list[FieldTuple] | None]:
        """Call a body: whether the chunk goes on, and its fields if they have changed."""
        function = self._stages[stage].function
        assert function is not None
        try:
            returned = function(chunk)
            if self._stages[stage].filters:
                return bool(returned), None
            if returned is None:
                return True, None
            if isinstance(returned, np.ndarray):
                returned = {"array": returned}
            if not isinstance(returned, Mapping):
                raise InvalidType(
                    f"a body returns None, an array or a dict of fields, got "
                    f"{type(returned).__name__}"
                )
            require_names(returned)
            chunk.update(returned)
            return True, self._fields(chunk)
        except BaseException as error:
            self.note(chunk.label, error)
            raise

    def record(self, stage: int, chunk: Chunk) -> Record:
        """A kernel's task, before it is submitted; the chunk keeps it."""
        try:
            stated = self._stages[stage]
            assert stated.codelet is not None
            parameters = dict(stated.parameters)
            for use in stated.uses:
                if use.reduction is not None:
                    part_of(use.reduction, chunk)
                    shape, _ = chunk.kind_of(use.reduction.field)
                    parameters |= use.reduction.parameters(shape)
            operands: list[Any] = [
                Operand(_Held(self._place(chunk, use.name)), use.access)  # type: ignore[arg-type]
                for use in stated.uses
            ]
            record = Record(chunk.number, stated.codelet, operands, parameters)
            if stated.returns:
                chunk.made[stage] = Result()
                record.result = weakref.ref(chunk.made[stage])
            return self._prepared(record, chunk)
        except BaseException as error:
            self.note(chunk.label, error)
            raise

    def most(self, stage: int, index: int, chunk: Chunk) -> int:
        """The most bytes of a field that a kernel returns."""
        made = self._stages[stage].returns[index]
        assert made.most is not None
        try:
            return max(0, made.most(chunk))
        except BaseException as error:
            self.note(chunk.label, error)
            raise

    def returned(
        self, stage: int, index: int, chunk: Chunk, on_host: bool, temporary: bool
    ) -> FieldTuple:
        """A field that a kernel has returned: adopted on the host, else its home, if it has one."""
        stated = self._stages[stage]
        names = [made.name for made in stated.returns]
        name = names[index]
        try:
            value = returned.value_of(chunk.made[stage].value, stated.name, names, index)
            if index == 0:
                chunk.records.clear()  # of tasks that have ended, with what they refer to
            if index + 1 == len(names):
                del chunk.made[stage]
            chunk.sizes.pop(name, None)
            if on_host:
                value = returned.adopted(value)
                if name in self._updated:
                    held, value = [value], None
                    value = own(held)
            else:
                chunk.kept[name] = value
                layout = returned.layout_there(value)
            if temporary:
                chunk.sizes[name] = layout_of(value) if on_host else layout
                chunk.kept[name] = value
                layout = chunk.sizes[name]
                address = layout.start_of(value) if on_host else 0
                return (name, address, layout.rows, layout.cols, layout.ld, layout.core_dtype)
            if not on_host:
                value = empty_of(self._buffers, layout.shape, layout.dtype)
            chunk.update({name: value})
            return _tuple_of(name, place_of(chunk, name, chunk[name]))
        except BaseException as error:
            self.note(chunk.label, error)
            raise

    def fill(self, stage: int, index: int, chunk: Chunk) -> Record:
        """The task that brings to a tile what a kernel has returned."""
        made = self._stages[stage].returns[index]
        whole: Any = Operand(_Held(self._place(chunk, made.name)), "write")  # type: ignore[arg-type]
        record = Record(chunk.number, made.fill, [whole], {"made": chunk.kept.pop(made.name)})
        return self._prepared(record, chunk)

    def filled(self, chunk: Chunk) -> None:
        """What kernels returned is in tiles: the arrays of their libraries can go."""
        chunk.records.clear()

    def _prepared(self, record: Record, chunk: Chunk) -> Record:
        """One that the chunk keeps until its task has ended."""
        record.failures = _OfPart(self, chunk) if chunk.parts else self  # type: ignore[assignment]
        if self._has_cuda and record.codelet.cuda is not None:
            record.prepare_for_cuda()
        chunk.records.append(record)
        return record

    def temporary(self, chunk: Chunk, name: str) -> tuple[int, int, _core.DType]:
        """The size of a chunk's temporary."""
        layout = chunk.sizes[name]
        return layout.rows, layout.cols, layout.core_dtype

    def part_shape(self, chunk: Chunk, name: str) -> tuple[int, int, _core.DType]:
        """The size of a result of all chunks, by one of them."""
        try:
            return part_of(self.reductions[name], chunk)
        except BaseException as error:
            self.note(chunk.label, error)
            raise

    def begin_part(self, name: str, address: int) -> None:
        """Set a part of such a result to the neutral element."""
        self.reductions[name].begin(address)

    def combine(self, name: str, into: int, part: int) -> None:
        """Add one part to another."""
        self.reductions[name].combine(into, part)

    def seconds(self, stage: int, chunk: Chunk) -> float:
        """What a stage takes for a chunk, as stated; -1 is the source."""
        stated = self._seconds if stage < 0 else self._stages[stage].seconds
        assert stated is not None
        return float(stated(chunk))

    def note(self, label: str | int, error: BaseException) -> None:
        """What a chunk's stage raised first."""
        self.raised.setdefault(str(label), error)

    def close(self) -> None:
        """The source isn't asked any more; a generator ends, unless it runs at the moment."""
        source, self._source = self._source, None
        if inspect.isgenerator(source) and not source.gi_running:
            source.close()
        if self._lent is not None:
            self._lent.give_back()

    def end(self) -> dict[str, BaseException]:
        """What was raised, by label or as "source"; the garbage collector can't see it in here."""
        self.close()
        raised, self.raised = self.raised, {}
        if self.source_error is not None:
            raised["source"], self.source_error = self.source_error, None
        return raised

    def _fields(self, chunk: Chunk) -> list[FieldTuple]:
        fields = []
        for name, array in chunk.items():
            if name not in self._used or not is_array(array) or array.dtype.hasobject:
                continue
            if name in self._changed and not array.flags.writeable:
                raise InvalidArgument(
                    f"field {name!r} of chunk {chunk.label} is read-only, and a kernel changes it"
                )
            if name in self._updated and self._changed_fields is not None:
                self._changed_fields.add(chunk, name, array)
            fields.append(_tuple_of(name, place_of(chunk, name, array)))
        return fields

    def _complete(self, chunk: Chunk, use: KernelUse) -> None:
        """Make what a kernel will write, so that the bytes of the whole way are known."""
        if use.shape is None or use.name in chunk or use.name in chunk.sizes:
            return
        try:
            shape, dtype = use.shape(chunk)
            shape, dtype = _sizes(shape), np.dtype(dtype)
        except KeyError as error:
            raise InvalidArgument(
                f"the shape of {use.name!r} follows from what the source gives: {error.args[0]}"
            ) from error
        except (TypeError, ValueError) as error:
            raise InvalidArgument(
                f"the shape of {use.name!r} must be (shape, dtype): {error}"
            ) from error
        if min(shape, default=0) < 0:
            raise InvalidArgument(
                f"the shape of {use.name!r} is {shape} for chunk {chunk.label}; expected sizes of "
                "0 or more"
            )
        if use.temporary:
            chunk.sizes[use.name] = layout_of_new(shape, dtype)
        else:
            chunk.update({use.name: empty_of(self._buffers, shape, dtype)})
            chunk.outputs[use.name] = chunk[use.name]

    def _place(self, chunk: Chunk, name: str) -> Place:
        if name in self._places:
            return self._places[name]
        reduction = self.reductions.get(name)
        layout = reduction.layout if reduction is not None else chunk.sizes.get(name)
        if layout is not None:
            return Place(None, layout, None, NOWHERE)  # type: ignore[arg-type]
        array = chunk[name]
        if not isinstance(array, np.ndarray):
            raise InvalidType(
                f"field {name!r} of chunk {chunk.label} is {type(array).__name__}; kernels take "
                "arrays"
            )
        return place_of(chunk, name, array)


def _sizes(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if np.ndim(shape) == 0 else tuple(int(each) for each in shape)
