# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/doctor.py: what this machine has, what of it is used, and why the rest is not.
"""Facts about the machine, and findings from them, apart so that tests can make up facts."""

from __future__ import annotations

import ctypes
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _core, cuda_libraries, nvrtc
from .errors import Unavailable
from .findings import Finding, State
from .gpus import driver_reason, judge_gpus, nvidia_gpus
from .message.pairs import paths_of
from .settings import config

_DRIVER = "libcuda.so.1"
_PAIR_REMEDY = "docs/messages.md says what keeps memory of devices from being mapped"


@dataclass(frozen=True)
class Facts:
    """What judging needs to know; `collect` makes them of this machine.

    Attributes
    ----------
    cores, all_cores : int
        That may compute, and that the system has.
    memory_bytes, all_memory_bytes : int
        The same of memory.
    gpus : list of str
        PCI addresses of NVIDIA's GPUs.
    nodes : dict
        Device files of the driver, and whether this user may open them.
    driver : str or None
        Why the driver's library can't be loaded, None if it can.
    cuda : str
        Why no CUDA device can be used, empty if one can.
    visible : str or None
        CUDA_VISIBLE_DEVICES.
    devices : str
        The setting devices.
    libraries : dict
        Why each library that the CUDA part needs can't be opened, empty if it can; empty itself in
        a build without the CUDA part.
    compiler : str
        NVRTC's version and file, empty if there is none.
    no_compiler : str
        Why there is none, and what to install.
    nccl : str
        NCCL's version and file, empty if there is none.
    no_nccl : str
        Why there is none.
    kernels : str
        The folder of compiled kernels, empty if the cache is off.
    not_kept : str
        Why none are kept there, empty if they are.
    readings : dict
        What NVML and CUDA say of each GPU; empty: they weren't asked.
    """

    cores: int
    all_cores: int
    memory_bytes: int
    all_memory_bytes: int
    gpus: list[str] = field(default_factory=list)
    nodes: dict[str, bool] = field(default_factory=dict)
    driver: str | None = None
    cuda: str = ""
    visible: str | None = None
    devices: str = ""
    libraries: dict[str, str] = field(default_factory=dict)
    compiler: str = ""
    no_compiler: str = ""
    nccl: str = ""
    no_nccl: str = ""
    kernels: str = ""
    not_kept: str = ""
    readings: dict[str, Any] = field(default_factory=dict)


def collect(root: Path = Path("/"), library: str = _DRIVER) -> Facts:
    """The facts of this machine."""
    cuda_libraries.load()
    cuda_libraries.tell_of_nccl()
    version, file, no_nccl = _core.nccl_found()
    compiler, no_compiler = _compiler()
    kernels, not_kept = nvrtc.kept_in()
    return Facts(
        cores=_core.usable_cores(),
        all_cores=os.cpu_count() or 1,
        memory_bytes=_core.usable_memory_bytes(),
        all_memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpus=nvidia_gpus(root),
        nodes={
            str(node): os.access(node, os.R_OK | os.W_OK)
            for node in sorted((root / "dev").glob("nvidia[0-9c]*"))
            if not node.is_dir()
        },
        driver=_load(library),
        cuda=_core.Machine.cuda_absence(),
        visible=_core.cuda_visible_devices(),
        devices=config["devices"],
        libraries=_core.cuda_libraries(),
        compiler=compiler,
        no_compiler=no_compiler,
        nccl="" if no_nccl else f"{version} in {file}",
        no_nccl=no_nccl,
        kernels=kernels,
        not_kept=not_kept,
        readings=json.loads(_core.inspect_devices()),
    )


def judge(facts: Facts) -> list[Finding]:
    """What is used, what isn't and why."""
    found = [_cores(facts), _memory(facts), _gpus(facts), _cuda_part(facts), _nvrtc(facts)]
    found += _nccl(facts)
    return found + (judge_gpus(facts.readings, facts.visible) if facts.readings else [])


def judge_pairs(devices: str) -> list[Finding]:
    """Which way messages between processes take from each device to each other one, by trying."""
    try:
        paths = paths_of(devices)
    except Unavailable as error:
        return [Finding("pairs", State.unused, f"not tried: {error}")]
    return [
        Finding(
            f"{each.source}->{each.target}",
            State.used if each.path == "mapped" else State.limited,
            f"messages: {each.path}, {_core.format_bytes_per_second(each.bytes_per_second)}"
            + _prediction(each.predicted),
            "" if each.path == "mapped" else _PAIR_REMEDY,
        )
        for each in paths
    ]


def _prediction(bytes_per_second: float | None) -> str:
    if bytes_per_second is None:
        return ""
    return f" ({_core.format_bytes_per_second(bytes_per_second)} by the machine's links)"


def _cores(facts: Facts) -> Finding:
    text = f"{facts.cores} of {facts.all_cores}"
    if facts.cores >= facts.all_cores:
        return Finding("cores", State.used, text)
    return Finding(
        "cores",
        State.unused,
        f"{text}: affinity, a control group or the setting threads allows no more",
        "start it without taskset, with a larger CPU quota, or unset QUADRIGA_THREADS",
    )


def _memory(facts: Facts) -> Finding:
    usable, there = (
        _core.format_bytes(size) for size in (facts.memory_bytes, facts.all_memory_bytes)
    )
    if facts.memory_bytes >= 0.99 * facts.all_memory_bytes:
        return Finding("memory", State.used, usable)
    return Finding(
        "memory",
        State.unused,
        f"{usable} of {there}: a control group allows no more",
        "raise the container's or the service's limit on memory",
    )


def _gpus(facts: Facts) -> Finding:
    if not facts.cuda and facts.devices not in ("", "auto") and "cuda" not in facts.devices:
        why = f"present, not used: the setting devices is {facts.devices!r}"
        return Finding("GPUs", State.unused, why, "unset it, or name cuda in it")
    if not facts.cuda:
        return Finding("GPUs", State.used, f"{len(facts.gpus) or 'some'}, through CUDA")
    if not facts.gpus and not facts.nodes:
        return Finding("GPUs", State.absent, "no NVIDIA GPU on the PCI bus")
    why, remedy = _reason(facts)
    there = f"{len(facts.gpus) or 'some'} present, not used: {why}"
    return Finding("GPUs", State.unused, there, remedy)


def _reason(facts: Facts) -> tuple[str, str]:
    """Why CUDA has no device, from the hardware up, and what would help."""
    closed = [node for node, is_open in facts.nodes.items() if not is_open]
    if facts.driver is not None:
        return f"no driver: {facts.driver}", "install NVIDIA's driver, and load its module"
    if not facts.nodes:
        return (
            "the driver's files /dev/nvidia* are missing",
            "load the module nvidia; in a container pass the GPUs to it",
        )
    if closed:
        return (
            f"this user may not open {', '.join(closed)}",
            "add the user to the group that owns these files",
        )
    if "no CUDA backend" in facts.cuda:
        return facts.cuda, "build it where CUDA 13's compiler is"
    too_old = driver_reason(facts.readings) if facts.readings else None
    if too_old:
        return too_old
    if facts.visible is not None:
        return f"CUDA_VISIBLE_DEVICES is {facts.visible!r}; {facts.cuda}", "unset it"
    return facts.cuda, "install a driver for this version of CUDA"


def _cuda_part(facts: Facts) -> Finding:
    """Whether this build has what computes on GPUs, and whether that finds CUDA's libraries."""
    without_gpu = not facts.gpus and not facts.nodes
    fault = State.absent if without_gpu else State.unused
    if not facts.libraries:
        return Finding(
            "CUDA",
            fault,
            "not part of this build",
            "" if without_gpu else "build it where CUDA 13's compiler is: pip install . takes it",
        )
    missing = [f"{name}: {absence}" for name, absence in facts.libraries.items() if absence]
    if missing:
        return Finding(
            "CUDA",
            fault,
            f"part of this build; {'; '.join(missing)}",
            "" if without_gpu else "pip install 'quadriga[cuda]', or install CUDA 13",
        )
    found = f"part of this build; {' and '.join(facts.libraries)} found"
    if facts.driver is not None:
        return Finding("CUDA", State.absent, f"{found}; no driver")
    return Finding("CUDA", State.used, found)


def _nvrtc(facts: Facts) -> Finding:
    """What compiles codelets from CUDA source; missed only where they could run."""
    needed = bool(facts.libraries) and facts.driver is None
    if facts.no_compiler:
        if not needed:
            return Finding("NVRTC", State.absent, "not found; codelets from CUDA source need it")
        return Finding(
            "NVRTC",
            State.limited,
            f"not found, so that codelets from CUDA source can't run: {facts.no_compiler}",
            "pip install 'quadriga[cuda]', or install CUDA 13",
        )
    if needed and facts.not_kept:
        return Finding(
            "NVRTC",
            State.limited,
            f"{facts.compiler}; compiled kernels aren't kept in {facts.kernels}: {facts.not_kept}",
            "set QUADRIGA_CACHE to a folder that only this user can write",
        )
    kept = "are kept in " + facts.kernels if facts.kernels else "aren't kept: the cache is off"
    state = State.used if needed else State.absent
    return Finding("NVRTC", state, f"{facts.compiler}; compiled kernels {kept}")


def _nccl(facts: Facts) -> list[Finding]:
    """What may carry out collectives of several GPUs; nobody needs it."""
    if facts.nccl:
        state = State.used if len(facts.gpus) > 1 else State.absent
        return [Finding("NCCL", state, f"{facts.nccl}; collectives of GPUs use it where faster")]
    if not facts.no_nccl or len(facts.gpus) < 2:
        return []
    text = f"not found, so that collectives of GPUs go by messages: {facts.no_nccl}"
    return [Finding("NCCL", State.absent, text)]


def _compiler() -> tuple[str, str]:
    """NVRTC's version and file, or why there is none."""
    try:
        return nvrtc.found(), ""
    except Unavailable as error:
        return "", str(error)


def _load(library: str) -> str | None:
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return None
