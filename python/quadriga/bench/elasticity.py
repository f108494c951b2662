# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/elasticity.py: stiffness of a box of linear tetrahedra, three rows a node.
"""A matrix like that of a mechanical problem: dense blocks of 3 x 3, about 15 in a row of them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_POISSON_RATIO = 0.3
_JITTER = 0.2
_LAYERS = 8
_STIFFER = 10.0


def box_stiffness(shape: tuple[int, int, int], seed: int = 1) -> Any:
    """The stiffness matrix of a box of `shape` nodes, at least 2 each, held at its first layer.

    Each cell is six tetrahedra around its diagonal (Kuhn). Nodes are moved at random by up to a
    fifth of a cell, and layers of nodes are stiffer by turns. Symmetric, positive definite; in CSR.
    """
    from scipy.sparse import bsr_array

    points = _points(shape, seed)
    steps = _steps()
    blocks = np.zeros((*shape, len(steps), 3, 3))
    young = np.where(np.arange(shape[0] - 1) // max(1, shape[0] // _LAYERS) % 2, _STIFFER, 1.0)
    for corners in _tetrahedra():
        _add_tetrahedra(blocks, points, corners, steps, young)
    blocks[0, :, :, steps[(0, 0, 0)]] += 10 * _STIFFER * np.eye(3)
    nodes = np.arange(np.prod(shape)).reshape(shape)
    ordered = sorted(steps)
    inside = np.stack([_inside(shape, step) for step in ordered], axis=-1)
    ahead = [int(np.dot(step, (shape[1] * shape[2], shape[2], 1))) for step in ordered]
    columns = (nodes[..., None] + np.asarray(ahead))[inside]
    places = [steps[step] for step in ordered]
    offsets = np.concatenate([[0], np.cumsum(inside.reshape(-1, len(ordered)).sum(axis=1))])
    order = 3 * nodes.size
    matrix = bsr_array((blocks[:, :, :, places][inside], columns, offsets), shape=(order, order))
    return matrix.tocsr()


def _points(shape: tuple[int, int, int], seed: int) -> Floats:
    grid = np.stack(np.meshgrid(*(np.arange(n, dtype=float) for n in shape), indexing="ij"), -1)
    moved: Floats = grid + np.random.default_rng(seed).uniform(-_JITTER, _JITTER, grid.shape)
    return moved


def _tetrahedra() -> list[list[tuple[int, ...]]]:
    """Corners of the six: from (0, 0, 0) to (1, 1, 1), one direction after the other."""
    found = []
    for order in permutations(range(3)):
        corners: list[tuple[int, ...]] = [(0, 0, 0)]
        for axis in order:
            step = list(corners[-1])
            step[axis] = 1
            corners.append(tuple(step))
        found.append(corners)
    return found


def _steps() -> dict[tuple[int, ...], int]:
    """From a node to each that shares a tetrahedron, and where its block is kept."""
    steps = {
        tuple(int(d) for d in np.subtract(b, a))
        for corners in _tetrahedra()
        for a in corners
        for b in corners
    }
    return {step: place for place, step in enumerate(sorted(steps))}


def _part(shape: tuple[int, ...], corner: tuple[int, ...]) -> tuple[slice, ...]:
    """The nodes that are this corner of a cell, of all cells."""
    return tuple(slice(c, n - 1 + c) for n, c in zip(shape, corner, strict=True))


def _inside(shape: tuple[int, int, int], step: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    found = np.zeros(shape, bool)
    part = tuple(slice(max(0, -s), n - max(0, s)) for n, s in zip(shape, step, strict=True))
    found[part] = True
    return found


def _add_tetrahedra(
    blocks: Floats,
    points: Floats,
    corners: list[tuple[int, ...]],
    steps: dict[tuple[int, ...], int],
    young: Floats,
) -> None:
    """One of the six of every cell.

    For nodes a, b with gradients g: volume * (lambda * g_a[i] * g_b[j] + mu * g_a[j] * g_b[i]
    + mu * (g_a . g_b) * (i == j)).
    """
    shape = points.shape[:3]
    x = [points[_part(shape, corner)] for corner in corners]
    edges = np.stack([each - x[0] for each in x[1:]], axis=-2)
    volumes = np.abs(np.linalg.det(edges)) / 6 * young[:, None, None]
    inner = np.linalg.inv(edges)
    gradients = [-inner.sum(axis=-1), *(inner[..., k] for k in range(3))]
    shear = volumes / (2 * (1 + _POISSON_RATIO))
    bulk = 2 * shear * _POISSON_RATIO / (1 - 2 * _POISSON_RATIO)
    for a, g_a in zip(corners, gradients, strict=True):
        for b, g_b in zip(corners, gradients, strict=True):
            outer = g_a[..., :, None] * g_b[..., None, :]
            block = bulk[..., None, None] * outer
            block += shear[..., None, None] * np.swapaxes(outer, -1, -2)
            dots = shear * np.einsum("xyzi,xyzi->xyz", g_a, g_b)
            block += dots[..., None, None] * np.eye(3)
            place = steps[tuple(int(d) for d in np.subtract(b, a))]
            blocks[_part(shape, a)][..., place, :, :] += block
