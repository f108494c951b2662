# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/gpus.py: for each GPU why it isn't used, or not all of it.
"""Findings on GPUs, from readings of NVML, which sees all, and CUDA, which sees usable ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import _core
from .findings import Finding, State

Reading = dict[str, Any]

_NVIDIA = "0x10de"
_CLASSES = ("0x0300", "0x0302")  # display and 3D controllers
# Of a GPU's memory; displays and idle contexts take less.
_LITTLE = 0.05


def nvidia_gpus(root: Path = Path("/")) -> list[str]:
    """PCI addresses of NVIDIA's GPUs, driver or not."""
    found = []
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        try:
            vendor = (device / "vendor").read_text().strip()
            kind = (device / "class").read_text().strip()
        except OSError:
            continue
        if vendor == _NVIDIA and kind.startswith(_CLASSES):
            found.append(device.name)
    return found


def version_text(version: int) -> str:
    """CUDA's number 13000 is version 13.0."""
    return f"{version // 1000}.{version % 1000 // 10}"


def driver_reason(readings: Reading) -> tuple[str, str] | None:
    """If the driver is older than this build needs: both versions, and what would help."""
    served, needed = readings["cuda"]["driver_version"], readings["cuda"]["runtime_version"]
    if not served or not needed or served // 1000 >= needed // 1000:
        return None
    name = readings["nvml"]["driver"] or "found"
    return (
        f"the driver ({name}) serves CUDA {version_text(served)}, this build needs "
        f"{version_text(needed)}",
        f"install a driver for CUDA {version_text(needed)} or later",
    )


def process_name(pid: int) -> str:
    """The name of a process; empty where it can't be seen, as from within a container."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def judge_gpus(
    readings: Reading, visible: str | None, name_of: Callable[[int], str] = process_name
) -> list[Finding]:
    """A finding for each GPU, by NVML's numbers, and one for pairs that can't see each other.

    Parameters
    ----------
    readings : dict
        What `_core.inspect_devices` gives.
    visible : str or None
        CUDA_VISIBLE_DEVICES.
    name_of : callable, optional
        The name of a process by its number.
    """
    cuda = {gpu["pci_address"]: gpu for gpu in readings["cuda"]["gpus"]}
    seen = readings["nvml"]["gpus"] or readings["cuda"]["gpus"]
    found = []
    for number, gpu in enumerate(seen):
        state, text, remedy = _judge(gpu, cuda.get(gpu["pci_address"]), readings, visible, name_of)
        title = f"{gpu['model'] or 'GPU'} at {gpu['pci_address']}"
        found.append(Finding(f"GPU {gpu.get('index', number)}", state, f"{title}: {text}", remedy))
    return found + list(_pairs(readings["cuda"]["gpus"]))


def _judge(
    gpu: Reading,
    cuda: Reading | None,
    readings: Reading,
    visible: str | None,
    name_of: Callable[[int], str],
) -> tuple[State, str, str]:
    if cuda is None:
        return State.unused, *_hidden(gpu, readings, visible)
    if cuda["error"]:
        return State.unused, *_refused(gpu, cuda, name_of)
    if not cuda["has_kernels"]:
        return State.unused, *_without_kernels(cuda, readings)
    held = _held(gpu, name_of)
    if held and cuda["memory"] - cuda["free"] > _LITTLE * cuda["memory"]:
        free, there = (_core.format_bytes(cuda[key]) for key in ("free", "memory"))
        text = f"{free} of {there} are free; {held}"
        return State.limited, text, "end what holds it, or name memory= in the device list"
    return State.used, f"{_core.format_bytes(cuda['free'])} free", ""


def _hidden(gpu: Reading, readings: Reading, visible: str | None) -> tuple[str, str]:
    """Why CUDA doesn't count a GPU that NVML sees."""
    if gpu["compute_mode"] == "prohibited":
        return (
            "its compute mode is prohibited",
            f"sudo nvidia-smi -i {gpu['index']} -c DEFAULT",
        )
    if visible is not None:
        return f"CUDA_VISIBLE_DEVICES is {visible!r} and hides it", "unset it, or name it there"
    if gpu["mig"]:
        return (
            "cut into instances (MIG), none of which CUDA gave to this process",
            f"sudo nvidia-smi -i {gpu['index']} -mig 0, or name an instance in "
            "CUDA_VISIBLE_DEVICES",
        )
    count = len(readings["cuda"]["gpus"])
    absence = readings["cuda"]["absence"]
    why = f": {absence}" if absence else f", which counts {count}"
    return f"NVML sees it and CUDA doesn't{why}", "nvidia-smi -q tells its state"


def _refused(gpu: Reading, cuda: Reading, name_of: Callable[[int], str]) -> tuple[str, str]:
    """Why CUDA counts a GPU and makes no context on it."""
    mode = gpu.get("compute_mode")
    if mode == "prohibited":
        return (
            "its compute mode is prohibited",
            f"sudo nvidia-smi -i {gpu['index']} -c DEFAULT",
        )
    held = _held(gpu, name_of)
    if mode == "exclusive" and held:
        return (
            f"its compute mode gives it to one process alone; {held}",
            f"end that process, or sudo nvidia-smi -i {gpu['index']} -c DEFAULT",
        )
    return cuda["error"] + (f"; {held}" if held else ""), "nvidia-smi -q tells its state"


def _without_kernels(cuda: Reading, readings: Reading) -> tuple[str, str]:
    major, minor = cuda["capability"]
    return (
        f"its architecture is {major}.{minor}; this build has kernels for "
        f"{readings['cuda']['architectures']}",
        f"build with -DCMAKE_CUDA_ARCHITECTURES={major}{minor}",
    )


def _held(gpu: Reading, name_of: Callable[[int], str]) -> str:
    """Which processes hold memory, the largest first."""
    holders = sorted(gpu.get("processes", []), key=lambda each: -each["bytes"])
    texts = []
    for holder in holders[:3]:
        name = name_of(holder["pid"])
        size = f" {_core.format_bytes(holder['bytes'])}" if holder["bytes"] else ""
        texts.append(
            f"process {holder['pid']}{f' ({name})' if name else ''} holds{size or ' some'}"
        )
    if len(holders) > 3:
        texts.append(f"{len(holders) - 3} more processes hold the rest")
    return ", ".join(texts)


def _pairs(gpus: list[Reading]) -> Iterator[Finding]:
    """Pairs of CUDA's devices, once each, that can't access each other's memory."""
    pairs = [
        f"gpu{one} and gpu{other}"
        for one, gpu in enumerate(gpus)
        for other in gpu["unreachable"]
        if one < other or one not in gpus[other]["unreachable"]
    ]
    if pairs:
        yield Finding(
            "peers",
            State.limited,
            f"no access to each other's memory: {', '.join(pairs)}; their copies go by way of the "
            "host",
            "if they hang on one PCIe switch: turn ACS off, or the IOMMU in the BIOS",
        )
