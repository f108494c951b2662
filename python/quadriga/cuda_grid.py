# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cuda_grid.py: over how many blocks and threads a kernel is spread.
"""Grids and blocks that CUDA can launch, or an error that says which number is too large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .errors import InvalidArgument

Extent = int | Sequence[int]
Three = tuple[int, int, int]

# Of every device there is.
_MOST_THREADS = 1024  # of a block
_MOST_THREADS_Z = 64
_MOST_BLOCKS = (2**31 - 1, 65_535, 65_535)


def block_of(
    title: str, given: Extent | Callable[..., Extent], shapes: Sequence[tuple[int, ...]]
) -> Three:
    """Threads of a block along x, y and z."""
    block = _extent(title, "block", given(*shapes) if callable(given) else given, least=1)
    if prod(block) > _MOST_THREADS or block[2] > _MOST_THREADS_Z:
        raise InvalidArgument(
            f"codelet '{title}': a block of {block} threads; expected at most {_MOST_THREADS}, and "
            f"{_MOST_THREADS_Z} along z"
        )
    return block


def grid_of(
    title: str, given: Extent | Callable[..., Extent], shapes: Sequence[tuple[int, ...]]
) -> Three:
    """Blocks along x, y and z as the user says."""
    grid = _extent(title, "grid", given(*shapes) if callable(given) else given, least=0)
    for axis in _axes_too_long(grid):
        raise InvalidArgument(
            f"codelet '{title}': a grid of {grid} blocks; CUDA has at most {_MOST_BLOCKS[axis]} "
            f"along {'xyz'[axis]}"
        )
    return grid


def default_grid(title: str, rows: int, cols: int, block: Three) -> Three:
    """Blocks for a thread an element of a matrix: x counts columns, or elements, and y rows.

    Kernels count on it, so that a long axis can't be turned or folded behind their backs.
    """
    if block[1:] == (1, 1):
        grid = (_parts(rows * cols, block[0]), 1, 1)
    else:
        grid = (_parts(cols, block[0]), _parts(rows, block[1]), 1)
    for axis in _axes_too_long(grid):
        raise InvalidArgument(
            f"codelet '{title}': {rows} x {cols} elements in blocks of {block} threads are "
            f"{grid[axis]} blocks along {'xyz'[axis]}, and CUDA has at most {_MOST_BLOCKS[axis]}; "
            + (_more_rows(rows) if axis else "give a larger block=")
        )
    return grid


def _axes_too_long(grid: Three) -> list[int]:
    if 0 in grid:  # nothing runs
        return []
    return [axis for axis in range(3) if grid[axis] > _MOST_BLOCKS[axis]]


def _more_rows(rows: int) -> str:
    """What lets a thread, a block or a grid have more rows."""
    least = _parts(rows, _MOST_BLOCKS[1])
    longer = f"give a block of at least {least} along y, or " if least <= _MOST_THREADS else ""
    return (
        f"{longer}give a block of one dimension and count elements along x, or give grid= and let "
        "each thread take several rows, gridDim.y * blockDim.y apart"
    )


def _parts(elements: int, of: int) -> int:
    return -(-elements // of)


def _extent(title: str, what: str, given: Any, least: int) -> Three:
    """One to three numbers, filled up with ones."""
    numbers = tuple(given) if isinstance(given, Sequence) else (given,)
    whole = all(isinstance(each, (int, np.integer)) and each >= least for each in numbers)
    if not whole or not 1 <= len(numbers) <= 3:
        raise InvalidArgument(
            f"codelet '{title}': {what} {given!r}; expected one to three whole numbers of at "
            f"least {least}"
        )
    x, y, z = (*map(int, numbers), 1, 1)[:3]
    return x, y, z
