# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/__init__.py: the package's public names.
"""Task graphs and linear algebra bigger than any GPU's memory, on all devices of a machine.

Examples
--------
>>> import numpy as np
>>> import quadriga
>>> a = np.array([[4.0, 2.0], [2.0, 3.0]])
>>> with quadriga.Engine("emulated:2,memory=1MiB"):
...     quadriga.linalg.cholesky(a, lower=True)
array([[2.        , 0.        ],
       [1.        , 1.41421356]])
"""

import importlib
from typing import Any

from . import _core, errors, linalg, typing
from .batches import prefetch
from .codelets import Codelet, Cost, codelet
from .counters import Counters, DeviceCounters, LinkCounters
from .cuda_source import CudaSource
from .data import Data, Operand
from .defaults import configure, default_engine
from .division import Division
from .engine import Engine
from .errors import (
    Cancelled,
    Deadline,
    DeviceLost,
    Error,
    Internal,
    InvalidArgument,
    InvalidType,
    IoError,
    NotPositiveDefinite,
    PeerLost,
    SingularMatrix,
    TaskFailed,
    TooLarge,
    Unavailable,
)
from .future import Future
from .machine import Machine
from .per_stream import PerStream
from .pipeline import Pipeline
from .policy import policies
from .settings import config, install_logging, show_config
from .task_graph import TaskGraph

if _core.foreign_unwinder:
    raise ImportError(
        f"C++ exceptions end this process: libgcc's unwinder calls {_core.foreign_unwinder}, "
        "of another compiler's library that was loaded first; import quadriga before what loads it"
    )
install_logging()

__version__ = _core.version

__all__ = [
    "Cancelled",
    "Codelet",
    "Cost",
    "Counters",
    "CudaSource",
    "Data",
    "Deadline",
    "DeviceCounters",
    "DeviceLost",
    "Division",
    "Engine",
    "Error",
    "Future",
    "Internal",
    "InvalidArgument",
    "InvalidType",
    "IoError",
    "LinkCounters",
    "Machine",
    "NotPositiveDefinite",
    "Operand",
    "PeerLost",
    "PerStream",
    "Pipeline",
    "SingularMatrix",
    "TaskFailed",
    "TaskGraph",
    "TooLarge",
    "Unavailable",
    "__version__",
    "codelet",
    "config",
    "configure",
    "default_engine",
    "errors",
    "formats",
    "linalg",
    "message",
    "pipeline",
    "policies",
    "prefetch",
    "report",
    "show_config",
    "sparse",
    "typing",
]


def __getattr__(name: str) -> Any:
    # Imported when they are needed: the templates of reports take a while.
    if name not in ("formats", "message", "report", "sparse"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return __all__
