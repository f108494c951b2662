# SPDX-License-Identifier: BSD-3-Clause
# examples/piston/heat.py: conduction of heat through a mesh, as elasticity.py has its stiffness.
"""Steady temperatures of a body that is heated where it is pressed and cooled where it is held."""

import elasticity
import numpy as np
import quadratic
from scipy.sparse import coo_array

#: Elements whose matrices are in memory at once.
_AT_ONCE = 65536


def conduction(mesh, conductivity):
    """(nodes, nodes): heat that leaves each node at temperatures, in W for W/(mm K) and mm."""
    nodes = len(mesh.points)
    matrix = coo_array((nodes, nodes)).tocsr()
    for first in range(0, len(mesh.elements), _AT_ONCE):
        elements = mesh.elements[first : first + _AT_ONCE]
        blocks = conductivity * _dots(mesh.points, elements)
        rows, columns = np.broadcast_arrays(elements[:, :, None], elements[:, None, :])
        entries = (blocks.ravel(), (rows.ravel(), columns.ravel()))
        matrix += coo_array(entries, shape=(nodes, nodes)).tocsr()
    return matrix


def _dots(points, elements):
    """Of the gradients of each two shape functions, integrated over each element."""
    if elements.shape[1] == 4:
        g, volumes = elasticity.gradients(points, elements)
        return np.einsum("eai,ebi->eab", g * volumes[:, None, None], g)
    return quadratic.element_blocks(points, elements, 0, 1).trace(axis1=3, axis2=4)


def inflow(mesh, flux):
    """Heat into each node through the faces under pressure, in W for W/mm²; (nodes,)."""
    shapes = quadratic if mesh.elements.shape[1] == 10 else elasticity
    areas = np.linalg.norm(elasticity.face_normals(mesh), axis=1)
    return shapes.on_nodes(mesh, flux * areas[:, None]).ravel()


def held_nodes(mesh):
    """Those that a support fixes."""
    return np.unique(mesh.fixed[:, 0])
