# SPDX-License-Identifier: BSD-3-Clause
# examples/piston/picture.py: draws the surface of a mesh, coloured by a value of each node.
"""Triangles that face the viewer, the far ones first, by matplotlib."""

import numpy as np
from elasticity import face_normals
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

_SIDES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
_TURN, _TILT = np.radians(35), np.radians(30)
_LIGHT = np.array([-0.4, 0.5, 0.77])  # from the left, above and behind the viewer


def surface(points, elements):
    """Corners of triangles that only one element has, (triangles, 3), in turn seen from outside."""
    corners = elements[:, :4]
    is_left = np.linalg.det(points[corners[:, 1:]] - points[corners[:, :1]]) < 0
    corners = np.where(is_left[:, None], corners[:, [0, 2, 1, 3]], corners)
    triangles = corners[:, _SIDES].reshape(-1, 3)
    keys = np.sort(triangles, axis=1)
    _, first, count = np.unique(keys, axis=0, return_index=True, return_counts=True)
    return triangles[first[count == 1]]


def view(mesh):
    """Rows: to the right, up, to the viewer. Pressure comes from above."""
    up = -(mesh.pressures[:, None] * face_normals(mesh)).sum(axis=0)
    up /= np.linalg.norm(up)
    start = np.eye(3)[np.abs(up).argmin()]
    right = np.cross(up, start) / np.linalg.norm(np.cross(up, start))
    front = np.cross(right, up)
    right, front = (
        np.cos(_TURN) * right + np.sin(_TURN) * front,
        np.cos(_TURN) * front - np.sin(_TURN) * right,
    )
    return np.stack([
        right,
        np.cos(_TILT) * up - np.sin(_TILT) * front,
        np.cos(_TILT) * front + np.sin(_TILT) * up,
    ])  # fmt: skip


def draw(path, mesh, fields):
    """Writes a picture with one view for each (title, unit, values of nodes, shifts of points)."""
    triangles = surface(mesh.points, mesh.elements)
    axes_of_view = view(mesh)
    figure = Figure(figsize=(6.5 * len(fields), 6), layout="constrained")
    places = figure.subplots(1, len(fields), squeeze=False)[0]
    for axes, (title, unit, values, shifts) in zip(places, fields, strict=True):
        seen = ((mesh.points + shifts) @ axes_of_view.T)[triangles]
        shown = ScalarMappable(Normalize(values.min(), values.max()), "inferno")
        axes.add_collection(_shaded(seen, shown.to_rgba(values[triangles].mean(axis=1))))
        axes.set(title=title, aspect="equal")
        axes.autoscale_view()
        axes.set_axis_off()
        figure.colorbar(shown, ax=axes, label=unit, shrink=0.7)
    figure.savefig(path, dpi=150)


def _shaded(seen, colors):
    normals = np.cross(seen[:, 1] - seen[:, 0], seen[:, 2] - seen[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(float).tiny)
    front = np.flatnonzero(normals[:, 2] > 0)
    front = front[np.argsort(seen[front, :, 2].mean(axis=1))]
    light = 0.45 + 0.55 * np.clip(normals[front] @ _LIGHT, 0, 1)
    colors = colors[front]
    colors[:, :3] *= light[:, None]
    return PolyCollection(seen[front, :, :2], facecolors=colors, edgecolors=colors, linewidths=0.2)
