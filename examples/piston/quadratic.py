# SPDX-License-Identifier: BSD-3-Clause
# examples/piston/quadratic.py: stiffness of ten-node tetrahedra, and forces on them; by NumPy.
"""As elasticity.py, for elements with a node on each edge, integrated at four points."""

import numpy as np
from elasticity import face_normals
from scipy.sparse import bsr_array

#: Corners that the fifth to tenth node lie between.
EDGES = np.array([[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]])
_NEAR, _FAR = (5 + 3 * np.sqrt(5)) / 20, (5 - np.sqrt(5)) / 20
_POINTS = np.full((4, 4), _FAR) + (_NEAR - _FAR) * np.eye(4)
#: Elements whose matrices are in memory at once.
_AT_ONCE = 8192


def local_gradients(volumes):
    """Of the ten shape functions by three coordinates of the element, (10, 3).

    Shape functions are c * (2 * c - 1) at corners and 4 * a * b between two, where the four volume
    coordinates are 1 - x - y - z, x, y and z.
    """
    by_volume = np.zeros((10, 4))
    by_volume[range(4), range(4)] = 4 * volumes - 1
    for node, (a, b) in enumerate(EDGES, 4):
        by_volume[node, [a, b]] = 4 * volumes[[b, a]]
    return by_volume[:, 1:] - by_volume[:, :1]


def element_blocks(points, elements, shear, bulk):
    """(elements, 10, 10, 3, 3): what each pair of nodes of an element adds."""
    found = np.zeros((len(elements), 10, 10, 3, 3))
    corners = points[elements]
    for place in _POINTS:
        local = local_gradients(place)
        jacobian = np.einsum("eni,nj->eij", corners, local)
        weight = np.abs(np.linalg.det(jacobian)) / 24
        g = np.einsum("nj,eji->eni", local, np.linalg.inv(jacobian))
        outer = np.einsum("e,eai,ebj->eabij", weight, g, g)
        found += bulk * outer + shear * outer.swapaxes(3, 4)
        dots = shear * outer.trace(axis1=3, axis2=4)
        found += dots[..., None, None] * np.eye(3)
    return found


def stiffness(mesh):
    """The stiffness matrix, in blocks of 3 x 3."""
    nodes = len(mesh.points)
    shear = mesh.modulus / (2 * (1 + mesh.ratio))
    bulk = mesh.modulus * mesh.ratio / ((1 + mesh.ratio) * (1 - 2 * mesh.ratio))
    keys = mesh.elements[:, :, None] * nodes + mesh.elements[:, None, :]
    found = np.unique(keys)
    blocks = np.zeros((9, len(found)))
    for first in range(0, len(mesh.elements), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        made = element_blocks(mesh.points, mesh.elements[part], shear, bulk)
        places, index = np.unique(keys[part], return_inverse=True)
        at = np.searchsorted(found, places)
        for entry, values in zip(blocks, made.reshape(-1, 9).T, strict=True):
            entry[at] += np.bincount(index.ravel(), values, len(places))
    offsets = np.searchsorted(found, np.arange(nodes + 1) * nodes)
    dense = blocks.T.reshape(-1, 3, 3)
    return bsr_array((dense, found % nodes, offsets), shape=(3 * nodes, 3 * nodes))


def on_nodes(mesh, values):
    """Of values on faces, (faces, columns), a third on each node between two corners."""
    nodes = len(mesh.points)
    ends = np.sort(mesh.elements[:, EDGES], axis=2)
    keys, at = np.unique(ends[..., 0] * nodes + ends[..., 1], return_index=True)
    middles = mesh.elements[:, 4:].ravel()[at]
    found = np.zeros((nodes, values.shape[1]))
    for pair in ([0, 1], [1, 2], [2, 0]):
        ends = np.sort(mesh.faces[:, pair], axis=1)
        between = middles[np.searchsorted(keys, ends[:, 0] * nodes + ends[:, 1])]
        np.add.at(found, between, values / 3)
    return found


def pressure_forces(mesh):
    """On the nodes between the corners of faces; (3 * nodes,)."""
    return on_nodes(mesh, mesh.pressures[:, None] * face_normals(mesh)).ravel()
