# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/current.py: whose `with` block a thread is inside of.
"""Open `with` blocks of engines: each holds for its thread and those started since."""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any

from .errors import InvalidArgument


@dataclass(frozen=True, eq=False)
class Block:
    """An open block."""

    engine: Any
    process: int
    thread: threading.Thread
    #: Threads that ran when it was entered, and so aren't inside of it.
    others: weakref.WeakSet[threading.Thread]
    token: contextvars.Token[Block | None]


_own: contextvars.ContextVar[Block | None] = contextvars.ContextVar("engine", default=None)
_open: list[Block] = []  # steps on it are atomic each


def enter(engine: Any) -> Block:
    """A block begins."""
    here = threading.current_thread()
    others = weakref.WeakSet(each for each in threading.enumerate() if each is not here)
    block: Block = Block(engine, os.getpid(), here, others, _own.set(None))
    _own.set(block)
    _open.append(block)
    return block


def leave(block: Block) -> None:
    """It ends."""
    if block in _open:
        _open.remove(block)
    _own.reset(block.token)


def innermost() -> Any:
    """The engine of the innermost block that this thread is inside of; None if there is none.

    Blocks that a parent process entered don't count: its engines don't work here.
    """
    own = _own.get()
    if own is not None and own.process == os.getpid():
        return own.engine
    here = threading.current_thread()
    around = [
        each
        for each in list(_open)
        if each.process == os.getpid() and each.thread is not here and here not in each.others
    ]
    if len({each.thread for each in around}) > 1:
        raise InvalidArgument(
            "several threads are inside `with Engine(...)` blocks, and it isn't known which of "
            "them started this one: pass engine="
        )
    return around[-1].engine if around else None
