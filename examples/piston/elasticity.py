# SPDX-License-Identifier: BSD-3-Clause
# examples/piston/elasticity.py: stiffness of linear tetrahedra, forces of pressures; by NumPy.
"""Linear elasticity, assembled from all elements at once."""

import numpy as np
from scipy.sparse import bsr_array


def gradients(points, elements):
    """Of the four shape functions in each element, (elements, 4, 3), and the volumes."""
    corners = points[elements[:, :4]]
    edges = corners[:, 1:] - corners[:, :1]
    volumes = np.linalg.det(edges) / 6
    inner = np.linalg.inv(edges).transpose(0, 2, 1)
    return np.concatenate([-inner.sum(axis=1, keepdims=True), inner], axis=1), np.abs(volumes)


def stiffness(mesh):
    """The stiffness matrix, in blocks of 3 x 3: three displacements for each node.

    For nodes a, b of an element with gradients g: volume * (lambda * g_a[i] * g_b[j]
    + mu * g_a[j] * g_b[i] + mu * (g_a . g_b) * (i == j)).
    """
    nodes = len(mesh.points)
    shear = mesh.modulus / (2 * (1 + mesh.ratio))
    bulk = mesh.modulus * mesh.ratio / ((1 + mesh.ratio) * (1 - 2 * mesh.ratio))
    g, volumes = gradients(mesh.points, mesh.elements)
    corners = mesh.elements[:, :4]
    keys = (corners[:, :, None] * nodes + corners[:, None, :]).ravel()
    found, place = np.unique(keys, return_inverse=True)
    weighted = g * volumes[:, None, None]
    dots = np.einsum("eai,ebi->eab", weighted, g)
    blocks = np.empty((len(found), 3, 3))
    for i in range(3):
        for j in range(3):
            values = bulk * weighted[:, :, None, i] * g[:, None, :, j]
            values += shear * weighted[:, :, None, j] * g[:, None, :, i]
            if i == j:
                values += shear * dots
            blocks[:, i, j] = np.bincount(place, values.ravel(), len(found))
    offsets = np.searchsorted(found, np.arange(nodes + 1) * nodes)
    return bsr_array((blocks, found % nodes, offsets), shape=(3 * nodes, 3 * nodes))


def face_normals(mesh):
    """Into the body, as long as the face is large; (faces, 3)."""
    a, b, c = (mesh.points[mesh.faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a) / 2
    inward = np.einsum("fi,fi->f", normals, mesh.points[mesh.insides] - a)
    return normals * np.sign(inward)[:, None]


def on_nodes(mesh, values):
    """Of values on faces, (faces, columns), a third on each corner; (nodes, columns)."""
    found = np.zeros((len(mesh.points), values.shape[1]))
    np.add.at(found, mesh.faces, values[:, None, :] / 3)
    return found


def pressure_forces(mesh):
    """On the corners of faces; (3 * nodes,)."""
    return on_nodes(mesh, mesh.pressures[:, None] * face_normals(mesh)).ravel()


def free_directions(mesh):
    """Numbers of displacements that no support fixes."""
    is_free = np.ones((len(mesh.points), 3), bool)
    is_free[mesh.fixed[:, 0], mesh.fixed[:, 1]] = False
    return np.flatnonzero(is_free)


def rigid_motions(mesh):
    """Three translations and three rotations, which no stiffness resists; (3 * nodes, 6)."""
    points = mesh.points - mesh.points.mean(axis=0)
    points /= np.abs(points).max()
    motions = np.zeros((len(points), 3, 6))
    motions[:, [0, 1, 2], [0, 1, 2]] = 1
    for axis, (i, j) in enumerate([(1, 2), (2, 0), (0, 1)]):
        motions[:, i, 3 + axis] = -points[:, j]
        motions[:, j, 3 + axis] = points[:, i]
    return motions.reshape(-1, 6)
