# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/launch.py: launch: starts a program several times, as ranks of one world.
"""The command that starts ranks, and ends all when one fails."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import click

from ..message.start import ADDRESS, RANK, SIZE, TOKEN, new_token
from .completing import files_and
from .main import DONE

# prctl: which signal this process gets when its parent ends.
_PR_SET_PDEATHSIG = 1
# Bytes of a folder's path with which that of a socket in it is short enough.
_LONGEST_PLACE = 80
# Seconds between asking processes to end and ending them.
_GRACE = 2.0


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-n", "--ranks", type=click.IntRange(1, 256), required=True, help="Processes.")
@click.option(
    "--keep-going", is_flag=True, help="Let the others go on when a signal ends one (shrink())."
)
@click.argument(
    "program", nargs=-1, required=True, type=click.UNPROCESSED, shell_complete=files_and()
)
def launch(ranks: int, keep_going: bool, program: Sequence[str]) -> int:
    """Start PROGRAM as several processes that quadriga.message.world() joins.

    A program that ends in .py is run by this Python. When one process fails, all are ended, and
    its status is this command's. With --keep-going a process that a signal ends is only reported,
    unless none is left.
    """
    command = [sys.executable, *program] if program[0].endswith(".py") else list(program)
    with tempfile.TemporaryDirectory(prefix="quadriga-", dir=_place_of_sockets()) as folder:
        processes: list[subprocess.Popen[bytes]] = []
        asks = [signal.SIGTERM]
        try:
            _start(processes, command, ranks, folder)
            return _wait(processes, keep_going)
        except KeyboardInterrupt:
            # A terminal's Ctrl-C doesn't reach the ranks: they are in groups of their own.
            asks.insert(0, signal.SIGINT)
            raise
        finally:
            _end(processes, asks)


def _place_of_sockets() -> str:
    """Where temporary files go, unless it makes the path of a socket too long (107 bytes)."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= _LONGEST_PLACE else "/tmp"


def _start(
    processes: list[subprocess.Popen[bytes]], command: list[str], ranks: int, folder: str
) -> None:
    # By the environment: who may read a process's may read its memory, too.
    os.putenv(ADDRESS, f"file:{os.path.join(folder, 'join')}")
    os.putenv(SIZE, str(ranks))
    os.putenv(TOKEN, new_token())
    end_with_us = _ending_with(os.getpid())
    for rank in range(ranks):
        os.putenv(RANK, str(rank))
        try:
            processes.append(subprocess.Popen(command, process_group=0, preexec_fn=end_with_us))
        except OSError as error:
            raise click.ClickException(f"launch: {command[0]}: {error.strerror}") from error
    for name in (ADDRESS, SIZE, TOKEN, RANK):
        os.unsetenv(name)


def _ending_with(launcher: int) -> Callable[[], None]:
    """What a child does before its program: it asks for SIGTERM when the launcher is gone.

    All that it needs is made here: between fork and exec it takes no lock. The launcher waits in
    the thread that starts the ranks, whose end would count as its own.
    """
    prctl = ctypes.CDLL(None).prctl
    terminate = ctypes.c_ulong(signal.SIGTERM)

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, terminate)
        if os.getppid() != launcher:  # It was gone before.
            os._exit(1)

    return ask


def _wait(processes: list[subprocess.Popen[bytes]], keep_going: bool) -> int:
    """The first status that isn't 0, or 0 when all have ended; going on, signals don't count."""
    running = dict(enumerate(processes))
    descriptors = {rank: os.pidfd_open(each.pid) for rank, each in running.items()}
    import select

    poll = select.poll()
    for descriptor in descriptors.values():
        poll.register(descriptor, select.POLLIN)
    try:
        while running:
            poll.poll()
            for rank, process in list(running.items()):
                status = process.poll()
                if status is None:
                    continue
                poll.unregister(descriptors[rank])
                del running[rank]
                if status != 0:
                    how = f"signal {-status}" if status < 0 else f"status {status}"
                    click.echo(f"quadriga: launch: rank {rank} ended with {how}", err=True)
                    goes_on = keep_going and status < 0
                    if goes_on and (running or any(each.returncode == 0 for each in processes)):
                        continue
                    return 128 - status if status < 0 else status
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)
    return DONE


def _end(processes: list[subprocess.Popen[bytes]], asks: Sequence[signal.Signals]) -> None:
    try:
        for ask in asks:
            _send(processes, ask)
            until = time.monotonic() + _GRACE
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, until - time.monotonic()))
    finally:  # A second Ctrl-C comes here at once.
        _send(processes, signal.SIGKILL)
        for process in processes:
            process.wait()


def _send(processes: list[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    # To groups, which programs that they have started belong to as well.
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
