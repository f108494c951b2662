# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/tasks.py: sends, receives and collectives as tasks of an engine.
"""Messages as tasks: ordered with other tasks by the data that they touch."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from .. import _core
from .._core import MessageStatus
from ..arguments import whole
from ..data import Data, Operand
from ..engine import Engine
from ..errors import Cancelled, InvalidArgument, InvalidType
from ..future import Future
from ..given import NOT_YET, Result
from ..record import Record
from .elements import element_of

_ANY = -1
_MANY_RETIRED = 64


class Ranks(Protocol):
    """The part of a communicator that its tasks use."""

    core: _core.MessageCommunicator

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def _limit(self, deadline: float | None = None) -> float: ...


class _Named(NamedTuple):
    """What a future says of its codelet."""

    name: str


class _Call(NamedTuple):
    """What a task does; `peer` is the other rank or the root."""

    kind: str
    peer: int = _ANY
    tag: int = 0
    op: str = "sum"
    deadline: float | None = None
    priority: int = 0

    @property
    def name(self) -> str:
        """As in traces and errors."""
        whose = "any" if self.peer == _ANY else self.peer
        if self.kind == "send":
            return f"send to {whose}"
        return f"{self.kind} from {whose}" if self.kind == "recv" or self.peer >= 0 else self.kind

    def checked(self, seconds: float) -> tuple[str, int, int, str, float]:
        """As the extension module takes it."""
        most = 2**31 - 1
        peer, tag = whole("rank", self.peer, _ANY, most), whole("tag", self.tag, _ANY, most)
        return self.kind, peer, tag, self.op, seconds


class _Status(Result):
    """What a receive got, once its task has ended."""

    __slots__ = ("task",)

    task: _core.MessageTask | None

    def __init__(self) -> None:
        self.task = None
        self._is_given, self._shown = True, NOT_YET  # nobody can change a status

    @property
    def value(self) -> MessageStatus | None:
        return None if self.task is None else self.task.status()


class MessageRecord(Record):
    """A task whose work is the library's own; keeps its operands' memory until it has ended."""

    __slots__ = ("message",)

    def __init__(self, number: int, name: str, operands: list[Operand]) -> None:
        super().__init__(number, _Named(name), operands, {})  # type: ignore[arg-type]
        self.message: _core.MessageTask | None = None

    def take(self, operands: Sequence[Operand]) -> None:
        """Take its operands; there is no codelet that they have to fit."""
        self.access_only(operands)

    def withdraw(self) -> bool:
        """Withdraw the message; false if it has arrived, or a collective has begun."""
        if self.message is None or self.settled:
            return False
        text = f"task {self.id} '{self.codelet.name}' was cancelled"
        withdrawn = Cancelled(text)
        withdrawn.asked = True
        named = None
        if self.failures is not None:
            self.failures.note(self.number, withdrawn)
            named = self.failures.named
        if not self.message.refuse(self.number, text, named):
            return False
        self.withdrawn = withdrawn
        self.settle(withdrawn)
        return True


class MessageTasks:
    """Messages of a communicator as tasks of an engine; made by `Communicator.tasks`.

    Each method submits a task and returns its Future at once. A send reads its data, a receive
    writes them, a collective does what its name says; so they are ordered with all other tasks on
    the same data, while other tasks run. Messages between two ranks, and collectives, are issued
    in the order in which they were submitted.

    `deadline` is in seconds from the start of the message, when its data are ready; the task
    fails with `Deadline` then. Default: the communicator's. `priority` is as in `Engine.submit`.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> from quadriga import message
    >>> with quadriga.Engine("cpu:2") as engine, message.world() as comm:
    ...     tasks = comm.tasks(engine)
    ...     a, b = engine.data(np.arange(3.0)), engine.data(np.zeros(3))
    ...     received = tasks.recv(b, source=comm.rank, tag=7)
    ...     sent = tasks.send(a, dest=comm.rank, tag=7)
    ...     received.result()
    Status(source=0, tag=7, nbytes=24)
    """

    def __init__(self, communicator: Ranks, engine: Engine) -> None:
        self.communicator = communicator
        self.engine = engine

    def send(
        self,
        data: Data,
        dest: int,
        tag: int = 0,
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Future:
        """Send data to a rank; the task ends when they may be overwritten."""
        call = _Call("send", dest, tag, deadline=deadline, priority=priority)
        return self._submit(call, _of(data, "send").read())

    def recv(
        self,
        data: Data,
        source: int = _ANY,
        tag: int = _ANY,
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Future:
        """Receive into data, all of it; the future's result is the message's status."""
        call = _Call("recv", source, tag, deadline=deadline, priority=priority)
        return self._submit(call, None, _of(data, "recv").write())

    def barrier(self, *, deadline: float | None = None, priority: int = 0) -> Future:
        """End once all ranks have come to it with their collectives; other tasks don't wait."""
        return self._submit(_Call("barrier", deadline=deadline, priority=priority))

    def bcast(
        self, data: Data, root: int = 0, *, deadline: float | None = None, priority: int = 0
    ) -> Future:
        """Copy the root's data to all ranks."""
        call = _Call("bcast", self._root(root), deadline=deadline, priority=priority)
        _of(data, "bcast")
        if self.communicator.rank == root:
            return self._submit(call, data.read())
        return self._submit(call, None, data.write())

    def reduce(
        self,
        senddata: Data,
        recvdata: Data | None = None,
        op: str = "sum",
        root: int = 0,
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Future:
        """Combine the data of all ranks on the root: into `recvdata`, or in place without it."""
        call = _Call("reduce", self._root(root), 0, op, deadline, priority)
        if self.communicator.rank != root:
            return self._submit(call, _of(senddata, "reduce").read())
        return self._combine(call, senddata, recvdata)

    def allreduce(
        self,
        senddata: Data,
        recvdata: Data | None = None,
        op: str = "sum",
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Future:
        """Combine the data of all ranks on all: into `recvdata`, or in place without it."""
        call = _Call("allreduce", _ANY, 0, op, deadline, priority)
        return self._combine(call, senddata, recvdata)

    def gather(
        self,
        senddata: Data,
        recvdata: Data | None = None,
        root: int = 0,
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Future:
        """Put the ranks' data one after the other into the root's `recvdata`."""
        call = _Call("gather", self._root(root), deadline=deadline, priority=priority)
        read = _of(senddata, "gather").read()
        if self.communicator.rank != root:
            return self._submit(call, read)
        return self._submit(call, read, _of(recvdata, "gather: recvdata of the root").write())

    def allgather(
        self,
        senddata: Data,
        recvdata: Data,
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Future:
        """Put the ranks' data one after the other into `recvdata` of all ranks."""
        call = _Call("allgather", deadline=deadline, priority=priority)
        return self._both(call, senddata, recvdata)

    def scatter(
        self,
        senddata: Data | None,
        recvdata: Data,
        root: int = 0,
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Future:
        """Give each rank its part of the root's `senddata`, in order."""
        call = _Call("scatter", self._root(root), deadline=deadline, priority=priority)
        write = _of(recvdata, "scatter").write()
        if self.communicator.rank != root:
            return self._submit(call, None, write)
        return self._submit(call, _of(senddata, "scatter: senddata of the root").read(), write)

    def alltoall(
        self,
        senddata: Data,
        recvdata: Data,
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Future:
        """Give each rank a part of `senddata`, and get one from each into `recvdata`, in order."""
        call = _Call("alltoall", deadline=deadline, priority=priority)
        return self._both(call, senddata, recvdata)

    def _root(self, root: int) -> int:
        return whole("root", root, 0, self.communicator.size - 1)

    def _combine(self, call: _Call, senddata: Data, recvdata: Data | None) -> Future:
        if recvdata is None or recvdata == senddata:
            updated = _of(senddata, call.kind).update()
            return self._submit(call, updated, updated)
        return self._both(call, senddata, recvdata)

    def _both(self, call: _Call, senddata: Data, recvdata: Data) -> Future:
        return self._submit(call, _of(senddata, call.kind).read(), _of(recvdata, call.kind).write())

    def _submit(
        self, call: _Call, sent: Operand | None = None, received: Operand | None = None
    ) -> Future:
        engine, tasks = self.engine, self.engine._tasks
        operands = [each for each in (sent, received) if each is not None]
        if sent is received:
            operands = operands[:1]
        for each in operands:
            if each.data.engine is not engine:
                raise InvalidArgument(f"{call.kind}: the data are another engine's")
        engine._forget_retired(_MANY_RETIRED)
        tasks.make_room()
        record = MessageRecord(tasks.next_number(), call.name, operands)
        result = _Status()
        record.result = weakref.ref(result)
        future = Future(engine, tasks, record, result)
        record.failures = tasks.failures
        try:
            tasks.pending[record.number] = record
            record.message = result.task = _core.submit_message(
                engine.core,
                self.communicator.core,
                call.checked(self.communicator._limit(call.deadline)),
                [each.data.place.core for each in operands],
                [_shape_of(each.data) for each in operands],
                -1 if sent is None else 0,
                -1 if received is None else len(operands) - 1,
                record,
                call.priority and whole("priority", call.priority, -(2**31), 2**31 - 1),
            )
        except BaseException:
            if record.core is None:  # else an interrupt came after it: the task is there
                tasks.pending.pop(record.number, None)
            raise
        return future


def _of(data: Data | None, kind: str) -> Data:
    if not isinstance(data, Data):
        raise InvalidType(
            f"{kind}: expected data of the engine, as engine.data(array), got {type(data).__name__}"
        )
    return data


def _shape_of(data: Data) -> tuple[Any, list[int], list[int], int]:
    layout = data.place.layout
    leading = -1 if layout.ld_axis is None else layout.ld_axis
    return element_of(layout.dtype), list(layout.shape), list(layout.strides), leading
