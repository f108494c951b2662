# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/beside.py: files that are written beside their place and then take it.
"""Output files that are complete or, if writing fails, as they were before."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import IoError


def target_of(path: str | os.PathLike[str]) -> Path:
    """The file that an output replaces or makes, with links followed.

    Raises
    ------
    IoError
        If no file can be put there: it is a folder, a device or a pipe, or its folder is
        missing or can't be written.
    """
    if not os.fspath(path):
        raise IoError("an output's name is empty; expected a file")
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise IoError(f"{path}: is a folder; expected a file")
        if target.exists() and not target.is_file():
            raise IoError(
                f"{path}: is not a regular file; expected one, which is replaced, or a new name"
            )
        if not target.parent.is_dir():
            raise IoError(f"{path}: can't write there: the folder {target.parent} is missing")
    except IoError:
        raise
    except OSError as error:
        raise IoError(f"{path}: can't write there: {error.strerror}") from error
    if not os.access(target.parent, os.W_OK):
        raise IoError(f"{path}: can't write there: the folder {target.parent} is read-only")
    return target


@contextmanager
def beside(path: str | os.PathLike[str]) -> Iterator[tuple[int, Path]]:
    """Make a new file beside `path`, which replaces it if the block succeeds.

    Gives the file's descriptor and name.

    Raises
    ------
    IoError
        Naming `path`, if the file can't be made, written or put in its place.
    """
    target = target_of(path)
    try:
        # Part of the name only: a long one with more behind it wouldn't be a name any more.
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part"
        )
    except OSError as error:
        raise IoError(f"{path}: can't write there: {error.strerror}") from error
    written = Path(name)
    try:
        yield handle, written
        os.fsync(handle)
        os.fchmod(handle, _mode_of(target))
        written.replace(target)
    except BaseException as error:
        written.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, IoError):
            raise IoError(f"{path}: can't be written: {error.strerror or error}") from error
        raise
    finally:
        os.close(handle)


def _mode_of(target: Path) -> int:
    """The mode of the file that is replaced; for a new one that of the umask."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_beside(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file that is complete or, if writing fails, as it was before.

    It is UTF-8, with "?" for what can't be encoded, such as some names of files.
    """
    content = text.encode("utf-8", "replace")
    with beside(path) as (handle, _), open(handle, "wb", closefd=False) as file:
        file.write(content)
