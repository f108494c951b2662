# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cuda_libraries.py: finds cuBLAS and cuSOLVER of pip, conda or the system.
"""Loads CUDA's libraries, which the extension module opens by name and then finds loaded."""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys

from . import _core
from .errors import Unavailable
from .machine import Machine

logger = logging.getLogger("quadriga")
_NAMES = ("cublas", "cusolver")
_used_by: int | None = None  # the process; CUDA doesn't work in its children


def needed_by(devices: str | Machine) -> bool:
    """Whether a GPU is among the devices."""
    if isinstance(devices, Machine):
        return any(device.kind == "cuda" for device in devices.devices)
    if devices == "auto":
        return not _core.Machine.cuda_absence()
    return "cuda" in devices


@functools.cache
def load() -> dict[str, str]:
    """Load CUDA's libraries, once; their paths by name.

    `cuda-pathfinder` knows where they may be. Without it, and for what it doesn't find, the loader
    looks in its own places when they are called, and the task that calls says what is missing.
    """
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
    except ImportError as error:
        logger.debug("CUDA's libraries are looked for by the loader alone: %s", error)
        return {}
    found = {}
    for name in _NAMES:
        try:
            found[name] = str(pathfinder.load_nvidia_dynamic_lib(name).abs_path)
        except (RuntimeError, OSError) as error:
            logger.debug("cuda-pathfinder has no %s: %s", name, error)
    return found


@functools.cache
def tell_of_nccl() -> None:
    """Tell where pip's packages keep NCCL, which messages open when they need it."""
    places = [
        os.path.join(folder, "nvidia", "nccl", "lib", "libnccl.so.2")
        for folder in sys.path
        if isinstance(folder, str) and folder
    ]
    _core.nccl_places([place for place in places if os.path.exists(place)])


def use() -> None:
    """Load CUDA's libraries for engines of this process.

    Raises
    ------
    Unavailable
        If it was forked from one that used GPUs.
    """
    global _used_by
    if _used_by not in (None, os.getpid()):
        raise Unavailable(
            "this process was forked from one that used GPUs, which CUDA doesn't survive: start "
            "it by multiprocessing.get_context('spawn'), or give its engines other devices"
        )
    load()
    _used_by = os.getpid()
