# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/main.py: the commands, loaded when they are called, and how they end.
"""Finds a command, runs it, and turns what it raises into a message and a status."""

from __future__ import annotations

import difflib
import importlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
import numpy as np

from .. import __version__
from ..errors import Error, Unavailable
from ..settings import settings

DONE, FAILED, MISUSED, UNAVAILABLE = range(4)

# Where each command is; loading all of them would make each of them slow to start.
_COMMANDS = {
    "info": "info:info",
    "doctor": "doctor:doctor",
    "solve": "compute:solve",
    "cholesky": "compute:cholesky",
    "matmul": "compute:matmul",
    "cg": "sparse:cg",
    "simulate": "simulate:simulate",
    "calibrate": "calibrate:calibrate",
    "report": "report:report",
    "launch": "launch:launch",
    "mpi-preload": "mpi_preload:mpi_preload",
    "demo": "demo:demo",
    "bench": "..bench.commands:bench",
    "completion": "info:completion",
}


# What BLAS and LAPACK call them.
_ELSEWHERE = {"gemm": "matmul", "dgemm": "matmul", "potrf": "cholesky", "posv": "solve"}


class LazyGroup(click.Group):
    """Imports a command's module when the command is asked for."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(name, _COMMANDS, 1)
            meant = _ELSEWHERE.get(name) or next(iter(near), None)
            hint = f" Did you mean '{meant}'?" if meant else ""
            ctx.fail(f"No such command '{name}'.{hint}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name].split(":")
        relative = module if module.startswith(".") else f".{module}"
        found = getattr(importlib.import_module(relative, __package__), name)
        assert isinstance(found, click.Command)
        return found


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Run linear algebra bigger than any GPU's memory on all devices of a machine."""
    try:
        settings()
    except Error as error:
        raise click.UsageError(str(error)) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and end the process with its status."""
    sys.exit(status_of(arguments))


class _Terminated(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _signals() -> Iterator[None]:
    """Signals that end a process let it put its files in order first, as Ctrl-C does."""

    def terminate(number: int, _: object) -> None:
        raise _Terminated(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {kind: signal.getsignal(kind) for kind in (signal.SIGTERM, signal.SIGHUP)}
    ours = [kind for kind, handler in before.items() if handler is signal.SIG_DFL]
    for kind in ours:
        signal.signal(kind, terminate)
    try:
        yield
    finally:
        for kind in ours:
            signal.signal(kind, signal.SIG_DFL)


def status_of(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its status."""
    try:
        with _signals():
            return _status_of(arguments)
    except _Terminated as end:
        return _say("terminated; nothing is left half-written", 128 + end.number)


def _status_of(arguments: Sequence[str] | None) -> int:
    try:
        ended = cli.main(
            args=list(arguments) if arguments is not None else None,
            prog_name="quadriga",
            standalone_mode=False,
        )
        return ended if isinstance(ended, int) else DONE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted; nothing is left half-written", FAILED)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    except Unavailable as error:
        return _say(str(error), UNAVAILABLE)
    except (Error, OSError, np.linalg.LinAlgError, ValueError, MemoryError) as error:
        return _say(_words(error), FAILED)


def _words(error: BaseException) -> str:
    """Of the system's own errors the file and the reason, without a number."""
    if isinstance(error, OSError) and not isinstance(error, Error) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _say(message: str, status: int) -> int:
    click.echo(f"quadriga: {message}", err=True)
    return status
