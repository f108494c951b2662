# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/start.py: how processes become ranks: join, world, join_mpi.
"""Ways into a world of ranks."""

from __future__ import annotations

import os
import secrets
import tempfile

from .. import _core
from ..typing import Group
from .communicator import Communicator, as_world

_JOIN_SECONDS = 60.0
# What `quadriga launch` tells the processes that it starts.
ADDRESS, RANK, SIZE, TOKEN = (
    f"QUADRIGA_LAUNCH_{name}" for name in ("ADDRESS", "RANK", "SIZE", "TOKEN")
)


def new_token() -> str:
    """A token that nobody can guess: 128 bits, as 32 hexadecimal digits."""
    return secrets.token_hex(16)


def join(
    address: str,
    rank: int,
    size: int,
    token: str,
    *,
    deadline: float | None = None,
    patience: float = _JOIN_SECONDS,
) -> Communicator:
    """Become a rank of a world of processes on one host; returns once all have come.

    Parameters
    ----------
    address : str
        "file:PATH" or "tcp:127.0.0.1:PORT", the same on all ranks; nothing stays there.
    rank, size : int
        Which rank this process is, and how many there are.
    token : str
        32 hexadecimal digits, from `new_token()`, the same on all ranks. It is proved, not sent.
    deadline : float, optional
        Seconds that calls of the communicator may take.
    patience : float
        Seconds to wait for the other ranks.

    Raises
    ------
    Deadline
        If ranks didn't come; rank 0 names them.
    InvalidArgument
        If rank 0 has another token or size, or the rank is taken.
    """
    return as_world(_core.message_join(address, rank, size, token, patience), deadline)


def world(*, deadline: float | None = None, patience: float = _JOIN_SECONDS) -> Communicator:
    """All processes that the launcher started on this host, or this process alone.

    Understands `quadriga launch`, torchrun, and the mpiexec of Open MPI; for another MPI's see
    `join_mpi`. `patience` is in seconds, until all ranks must have come.

    Raises
    ------
    InvalidArgument
        If one of the launcher's variables is wrong or absent; it is named.
    Unavailable
        If the ranks are on several hosts, or nothing tells which of them belong together.
    Deadline
        If ranks didn't come.
    """
    return as_world(_core.message_world(patience), deadline)


def join_mpi(comm: Group, *, deadline: float | None = None) -> Communicator:
    """The ranks of an mpi4py communicator, all on one host, by its own MPI for the start only."""
    given = None
    if comm.Get_rank() == 0:
        given = (_address(secrets.token_hex(8)), new_token())
    address, token = comm.bcast(given, root=0)
    return join(address, comm.Get_rank(), comm.Get_size(), token, deadline=deadline)


def _address(name: str) -> str:
    return f"file:{os.path.join(tempfile.gettempdir(), f'quadriga-{os.getuid()}-{name}')}"
