# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/defaults.py: the engine of calls that name none.
"""The default engine, created on first use, as configured."""

from __future__ import annotations

import inspect
import os
import threading
from typing import Any

from .current import innermost
from .engine import Engine
from .errors import InvalidArgument
from .machine import Machine
from .settings import config

# What an engine is made from; if one changes, the default engine is made anew.
_KEYS = ("devices", "policy", "eviction", "window", "trace", "host_memory", "spill", "threads")

_lock = threading.RLock()
_engine: Engine | None = None
_made_from: tuple[str, ...] = ()
_options: dict[str, Any] = {}


def default_engine() -> Engine:
    """The engine of the innermost ``with`` block, else one shared by the whole program.

    A thread is in its own blocks, else in those in which it was started. The shared engine is
    created on first use, according to `configure` and `config`; a forked child creates its own.

    Raises
    ------
    InvalidArgument
        If several threads are in blocks and it is unknown which of them started this one.
    Unavailable
        In a child forked from a process that used GPUs, if the engine would use them too.

    Examples
    --------
    >>> import quadriga
    >>> with quadriga.Engine("cpu:1") as engine:
    ...     quadriga.default_engine() is engine
    True
    """
    inner: Engine | None = innermost()
    if inner is not None:
        return inner
    global _engine, _made_from
    with _lock:
        wanted = tuple(config[key] for key in _KEYS)
        if _engine is None or wanted != _made_from:
            if _engine is not None:
                _engine.close()
            _engine = Engine(**_options)
            _made_from = wanted
        return _engine


def configure(devices: str | Machine | None = None, **options: Any) -> None:
    """Close the default engine and set how the next one is created, when a call first needs it.

    Parameters
    ----------
    devices : str or Machine, optional
        A device list or a machine, as for `Engine`.
    **options
        Further arguments of `Engine`; their values are checked when the engine is created.

    Raises
    ------
    InvalidArgument
        For an option that `Engine` doesn't have.
    """
    global _engine
    known = [name for name in inspect.signature(Engine).parameters if name != "devices"]
    for name in options:
        if name not in known:
            raise InvalidArgument(f"configure({name}=...): expected one of {', '.join(known)}")
    with _lock:
        if _engine is not None:
            _engine.close()
        _engine = None
        _options.clear()
        _options.update(options, devices=devices)


def _begin_child() -> None:
    """After fork(): the parent's engine doesn't work here, and its lock may be locked for ever."""
    global _lock, _engine, _parents
    _lock = threading.RLock()
    _parents = (_parents, _engine)
    _engine = None


_parents: Any = None  # never ended here
os.register_at_fork(after_in_child=_begin_child)
