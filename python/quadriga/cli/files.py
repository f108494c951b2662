# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/files.py: .npy files, mapped: read with care, written whole or not at all.
"""Arrays in .npy files, and where outputs may go."""

from __future__ import annotations

import ast
import errno
import os
import shutil
import stat
import struct
import tokenize
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
import numpy.typing as npt

from .. import _core
from ..beside import beside, target_of
from ..errors import IoError

Array = npt.NDArray[Any]
# What NumPy and Python's parser raise for a damaged header; the last two where it nests deeply.
_UNREADABLE = (
    ValueError, SyntaxError, TypeError, EOFError, tokenize.TokenError, RecursionError, MemoryError,
)  # fmt: skip
_MOST_HEADER = 10_000  # bytes, as NumPy's own limit


def read(path: Path) -> Array:
    """The array in a .npy file, mapped read-only.

    Raises
    ------
    IoError
        If the file is missing, no .npy file, or not as long as its header says.
    """
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):  # a pipe would make us wait
            raise IoError(f"{path}: is not a regular file; expected a .npy file")
        with path.open("rb") as file:
            shape, fortran, dtype = _header(path, file)
            begin = file.tell()
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        if isinstance(error, IoError):
            raise
        raise IoError(f"{path}: {error.strerror or error}") from error
    if dtype.hasobject:
        raise IoError(f"{path}: holds Python objects; expected numbers")
    needed = begin + dtype.itemsize * _product(shape)
    if size != needed:
        state = "truncated" if size < needed else "longer than its header says"
        raise IoError(
            f"{path}: {state}: {dtype} of shape {shape} takes {needed} bytes with its header, and "
            f"the file has {size}"
        )
    return _mapped(path, shape, dtype, fortran, begin, "r")


def _product(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _header(path: Path, file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read_of: dict[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
        (3, 0): _read_header_3_0,
    }
    try:
        version = np.lib.format.read_magic(file)
        if version not in read_of:
            raise ValueError(f"format version {version} isn't known")
        _check_header_size(file, version)
        with warnings.catch_warnings(action="ignore"):  # of the parser, about odd text
            shape, fortran, dtype = read_of[version](file)
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else "unreadable"
        if reason.startswith("malformed node"):  # and names an object of the parser's
            reason = "its header is more than a dictionary of constants"
        raise IoError(f"{path}: not a .npy file: {reason}") from error
    if not isinstance(shape, tuple) or any(type(size) is not int or size < 0 for size in shape):
        raise IoError(f"{path}: not a .npy file: it says that its shape is {shape}")
    return tuple(shape), bool(fortran), dtype


def _read_header_3_0(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """As of version 2, but in UTF-8; NumPy has no name for it."""
    length = struct.unpack("<I", file.read(4))[0]
    header = ast.literal_eval(file.read(length).decode("utf-8"))
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header lacks what describes an array")
    return header["shape"], header["fortran_order"], np.lib.format.descr_to_dtype(header["descr"])


def _check_header_size(file: Any, version: tuple[int, int]) -> None:
    """NumPy reads a header whole before it looks at how long it is."""
    form = "<H" if version == (1, 0) else "<I"
    field = file.read(struct.calcsize(form))
    file.seek(-len(field), os.SEEK_CUR)
    if len(field) < struct.calcsize(form):
        raise ValueError("it ends before its header")
    if struct.unpack(form, field)[0] > _MOST_HEADER:
        raise ValueError(f"its header has {struct.unpack(form, field)[0]} bytes")


def need_apart(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuses outputs that would take the place of an input or of each other.

    Parameters
    ----------
    inputs, outputs : dict
        What each file is to whoever called the command, and its path.
    """
    taken = {os.path.realpath(path): name for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        other = taken.setdefault(os.path.realpath(path), name)
        if other != name:
            raise click.UsageError(f"{name} and {other} are the same file: {path}")


def need_names(outputs: Mapping[str, Path | None]) -> None:
    """Refuses standard output: outputs are written in any order, and then renamed.

    An empty name, which a path reads as the current folder, is refused as well.
    """
    for name, path in outputs.items():
        if str(path) == "-":
            raise click.UsageError(f"{name} is '-': expected a file's name")
        if path == Path():
            raise click.UsageError(f"{name} is empty: expected a file's name")


@contextmanager
def writing(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], fortran: bool
) -> Iterator[Array]:
    """A new array in a file beside `path`, which takes its place when the block ends well.

    Its space is reserved first; if anything fails, `path` is as it was and nothing is left behind.
    """
    with beside(path) as (handle, name):
        with os.fdopen(handle, "wb+", closefd=False) as file:
            begin, size = _write_header(file, shape, dtype, fortran)
        _reserve(path, handle, begin + size)
        array = _mapped(name, shape, dtype, fortran, begin, "r+")
        _core.watch_partial(os.fspath(name))
        try:
            yield array
            if isinstance(array, np.memmap):
                array.flush()
        finally:
            _core.forget_partial(os.fspath(name))


def _write_header(
    file: Any, shape: tuple[int, ...], dtype: np.dtype[Any], fortran: bool
) -> tuple[int, int]:
    described = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": described, "fortran_order": fortran, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    file.flush()
    return file.tell(), dtype.itemsize * _product(shape)


def _reserve(path: Path, handle: int, size: int) -> None:
    """Space first, so that a full disk is known before the work and not after it."""
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        needed = _core.format_bytes(size)
        if error.errno == errno.EFBIG:
            raise IoError(
                f"{path}: needs {needed}, more than the file system or the process's limit "
                "(ulimit -f) allows a file"
            ) from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise IoError(f"{path}: can't reserve space: {error.strerror}") from error
        free = shutil.disk_usage(target_of(path).parent).free
        raise IoError(
            f"{path}: needs {needed}, and {_core.format_bytes(free)} are free "
            f"there ({error.strerror})"
        ) from error


def _mapped(
    path: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    fortran: bool,
    begin: int,
    mode: Literal["r", "r+"],
) -> Array:
    order: Literal["C", "F"] = "F" if fortran else "C"
    if 0 in shape:
        return np.empty(shape, dtype, order=order)
    mapped: Array = np.memmap(path, dtype, mode, begin, shape, order)
    address = mapped.ctypes.data
    _core.watch_mapping(address, mapped.nbytes, os.fspath(path))
    weakref.finalize(mapped.base, _core.forget_mapping, address).atexit = False
    return mapped
