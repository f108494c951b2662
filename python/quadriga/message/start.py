# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/start.py: how processes become ranks: join, world, join_mpi.
"""Ways into a world of ranks."""

from __future__ import annotations

import os
import secrets
import tempfile
from typing import Any

from .. import _core
from ..errors import InvalidArgument, Unavailable
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


def world(*, deadline: float | None = None) -> Communicator:
    """All processes that the launcher started, or this process alone.

    Understands `quadriga launch` and torchrun on one host.
    """
    known = _core.launch_variables()
    if ADDRESS in known:
        rank, size = int(known[RANK]), int(known[SIZE])
        return join(known[ADDRESS], rank, size, known[TOKEN], deadline=deadline)
    if int(known.get("WORLD_SIZE", "1")) > 1:
        return _join_torchrun(known, deadline)
    return join("file:alone", 0, 1, new_token(), deadline=deadline)


def join_mpi(comm: Any, *, deadline: float | None = None) -> Communicator:
    """The ranks of an mpi4py communicator, all on one host, by its own MPI for the start only."""
    given = None
    if comm.Get_rank() == 0:
        given = (_address(secrets.token_hex(8)), new_token())
    address, token = comm.bcast(given, root=0)
    return join(address, comm.Get_rank(), comm.Get_size(), token, deadline=deadline)


def _address(name: str) -> str:
    return f"file:{os.path.join(tempfile.gettempdir(), f'quadriga-{os.getuid()}-{name}')}"


def _join_torchrun(known: dict[str, str], deadline: float | None) -> Communicator:
    """The processes share a token by a file that only this user can read."""
    rank, size = int(known["RANK"]), int(known["WORLD_SIZE"])
    if int(known.get("LOCAL_WORLD_SIZE", size)) != size:
        raise Unavailable(f"world: {size} ranks are on several hosts; this works on one host")
    name = f"torchrun-{known.get('TORCHELASTIC_RUN_ID', 'none')}-{known.get('MASTER_PORT', '0')}"
    path = _address(name.replace(os.sep, "-"))[len("file:") :]
    token = _shared_token(path + ".token", rank)
    try:
        return join(f"file:{path}", rank, size, token, deadline=deadline)
    finally:
        if rank == 0:
            os.unlink(path + ".token")


def _shared_token(path: str, rank: int) -> str:
    import time

    if rank == 0:
        token = new_token()
        # A file of an earlier run that failed is replaced at once, never seen half-written.
        descriptor, own = tempfile.mkstemp(dir=os.path.dirname(path))
        with os.fdopen(descriptor, "w") as file:
            file.write(token)
        os.replace(own, path)
        return token
    until = time.monotonic() + _JOIN_SECONDS
    while time.monotonic() < until:
        try:
            # Neither a link nor a pipe of somebody else's.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(path, flags)) as file:
                if os.fstat(file.fileno()).st_uid != os.getuid():
                    raise InvalidArgument(f"world: {path} belongs to another user")
                return file.read()
        except FileNotFoundError:
            time.sleep(0.01)
    raise Unavailable(f"world: rank 0 left no token at {path}")
