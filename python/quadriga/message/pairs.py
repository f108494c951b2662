# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/pairs.py: which way messages take between devices, found out by trying.
"""Each device gets a process, and each pair of processes exchanges a few messages.

`paths_of` starts the processes; what they run is this module, as a program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ..errors import Error, PeerLost, Unavailable
from ..machine import Machine
from ..typing import MessageArray
from .communicator import Communicator
from .devices import Devices
from .start import world

# Large enough that its time is the link's; every device has room for two.
_BYTES = 8 << 20
_TIMES = 3
# In which what is staged passes through the host.
_PIECE = 2 << 20
# Seconds for all of it: processes that find GPUs take some.
_PATIENCE = 120.0
# Before the words of an error that a rank ended with.
_RAISED = "pairs: raised: "


@dataclass(frozen=True)
class PairPath:
    """How messages from one device reach another one, each of a process of its own.

    Attributes
    ----------
    source, target : int
        Indices of the devices.
    path : str
        "mapped", or "staged" and why.
    bytes_per_second : float
        Of the quickest of a few messages of 8 MiB.
    predicted : float or None
        The same by the machine's links, see `predicted_seconds`.
    """

    source: int
    target: int
    path: str
    bytes_per_second: float
    predicted: float | None = None


def paths_of(devices: str) -> list[PairPath]:
    """The pairs of a list of devices as an engine's; a single one is shared by two processes.

    Raises
    ------
    Unavailable
        If the processes don't come or fail; the message says what they said.
    """
    ranks = max(2, len(Machine.parse(devices).devices))
    program = [sys.executable, "-m", "quadriga.message.pairs", devices]
    command = [sys.executable, "-m", "quadriga", "launch", "-n", str(ranks), *program]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pairs: no answer of {ranks} processes in {_PATIENCE:g} s") from None
    if ended.returncode != 0:
        said = ended.stderr.strip().splitlines() or [f"status {ended.returncode}"]
        # What a rank died of, not that another one missed it; the launcher only says that it did.
        raised = [line.removeprefix(_RAISED) for line in said if line.startswith(_RAISED)]
        raised.sort(key=lambda words: words.startswith(PeerLost.__name__))
        raise Unavailable(f"pairs: {(raised or said[-1:])[0]}")
    machine = Machine.parse(devices)
    found = [PairPath(*row) for row in json.loads(ended.stdout)]
    return [replace(each, predicted=_predicted(machine, each)) for each in found]


def predicted_seconds(
    machine: Machine, source: int, target: int, path: str, nbytes: int
) -> float | None:
    """How long a message from one device's memory to another's takes by the machine's links.

    Mapped, it is one copy from device to device. Staged, pieces pass through the host: the slower
    of the two links decides, and the other one carries a first or last piece. None within a
    device, whose memory has no link, and where the machine joins the two by none.
    """
    # Each device has memory of its own here: spaces are the host's, 0, then theirs in order.
    first, last = source + 1, target + 1
    copy = machine.core.copy_seconds
    if path == "mapped":
        seconds = copy(first, last, nbytes) if first != last else inf
    else:
        piece = min(nbytes, _PIECE)
        seconds = max(copy(first, 0, nbytes), copy(0, last, nbytes))
        seconds += min(copy(first, 0, piece), copy(0, last, piece))
    return seconds if seconds < inf else None


def _predicted(machine: Machine, pair: PairPath) -> float | None:
    seconds = predicted_seconds(machine, pair.source, pair.target, pair.path, _BYTES)
    return None if seconds is None else _BYTES / seconds


def _device(devices: str, rank: int) -> tuple[Devices, int, int]:
    """This rank's: whose memory, its index there, and its index among all."""
    machine = Machine.parse(devices)
    index = rank % len(machine.devices)
    if machine.devices[index].kind == "cuda":
        return Devices(f"cuda:{index}"), 0, index
    return Devices(devices), index, index


def _seconds(comm: Communicator, source: int, target: int, array: MessageArray) -> float:
    """Of the quickest message; the first one finds the pair's way."""
    least = float("inf")
    for _ in range(1 + _TIMES):
        comm.barrier()
        begin = time.perf_counter()
        if comm.rank == source:
            comm.send(array, target)
        if comm.rank == target:
            comm.recv(array, source)
        least = min(least, time.perf_counter() - begin)
    return least


def _told(comm: Communicator, text: str, root: int) -> str:
    """What the root says."""
    line = np.zeros(200, "u1")
    said = text.encode()[:200]
    line[: len(said)] = np.frombuffer(said, "u1")
    comm.bcast(line, root)
    return line.tobytes().rstrip(b"\0").decode()


def _run(devices: str) -> None:
    """As one rank: all pairs, one at a time."""
    with world(deadline=_PATIENCE) as comm:
        memory, device, index = _device(devices, comm.rank)
        array = memory.empty(_BYTES, "u1", device)
        array.set(np.zeros(_BYTES, "u1"))
        indices = comm.allgather(np.array([index]))[:, 0].tolist()
        rows: list[tuple[int, int, str, float]] = []
        for source in range(comm.size):
            for target in range(comm.size):
                if source == target:
                    continue
                seconds = _seconds(comm, source, target, array)
                took = comm.bcast(np.array([seconds]), target)[0]
                path = _told(comm, comm.paths()[source]["in"], target)
                rows.append((indices[source], indices[target], path, _BYTES / took))
        if comm.rank == 0:
            print(json.dumps(rows))


def _main(devices: str) -> int:
    try:
        _run(devices)
    except Error as error:
        # In one write: ranks share the stream, and a traceback's pieces would mix with another's.
        os.write(2, f"{_RAISED}{type(error).__name__}: {error}\n".encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
