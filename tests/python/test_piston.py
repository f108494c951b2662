# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_piston.py: the piston's reader and assembly on a cube, and the piston itself.
import lzma
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quadriga import sparse

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "piston"
MESH = Path(os.environ.get("QUADRIGA_TEST_PISTON", "/usr/share/z88/b21_lin_g.nas"))
# Six tetrahedra around a diagonal of the unit cube.
CUBE = """$ A cube that stands on three kinds of supports, with pressure 2 from above.
BEGIN BULK
MAT1,1,100.,,0.25,1.-3
PSOLID,1,1
GRID,10,,0.,0.,0.
GRID,11,,1.,0.,0.
GRID,12,,0.,1.,0.
GRID,13,,1.,1.,0.
GRID,20,,0.,0.,1.
GRID,21,,1.,0.,1.0+0
GRID,22,,0.,1.,1.
GRID,23,,1.,1.,1.
CTETRA,101,1,10,11,13,23
CTETRA,102,1,10,13,12,23
CTETRA,103,1,10,12,22,23
CTETRA,104,1,10,22,20,23
CTETRA,105,1,10,20,21,23
CTETRA,106,1,10,21,11,23
SPC,1,10,123,0.,11,23,0.
SPC,1,12,13
SPC,1,13,3,0.
PLOAD4,2,104,2.,,,,20,10
PLOAD4,2,105,2.,,,,20,10
ENDDATA
"""


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import elasticity
    import nastran
    import quadratic

    yield nastran, elasticity, quadratic
    for name in ("nastran", "elasticity", "quadratic", "heat", "picture"):
        sys.modules.pop(name, None)


@pytest.fixture
def cube(modules, tmp_path):
    path = tmp_path / "cube.nas"
    path.write_text(CUBE)
    return modules[0].read_mesh(path)


def test_the_reader_finds_what_the_file_says(cube):
    assert cube.points.shape == (8, 3) and cube.points[5].tolist() == [1, 0, 1]
    assert cube.elements[0].tolist() == [0, 1, 3, 7]
    assert (cube.modulus, cube.ratio) == (100, 0.25)
    assert cube.fixed.tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 0], [2, 2], [3, 2]]
    assert [sorted(face) for face in cube.faces.tolist()] == [[4, 6, 7], [4, 5, 7]]
    assert cube.pressures.tolist() == [2, 2]


@pytest.mark.parametrize(("old", "new", "said"), [
    ("PLOAD4", "PLOAD2", "no card PLOAD4"),
    ("20,10\nPLOAD4", "20,11\nPLOAD4", "names no corner"),
])  # fmt: skip
def test_meshes_that_lack_something_are_refused(modules, tmp_path, old, new, said):
    path = tmp_path / "bad.nas"
    path.write_text(CUBE.replace(old, new))
    with pytest.raises(ValueError, match=f"bad.nas: .*{said}"):
        modules[0].read_mesh(path)


def test_stiffness_leaves_rigid_motions_alone(cube, modules):
    matrix = modules[1].stiffness(cube)
    assert abs(matrix - matrix.T).max() < 1e-12
    x, y, z = cube.points.T
    none = np.zeros(8)
    motions = [np.stack(each, 1).ravel() for each in (
        (none + 1, none, none), (none, none + 1, none), (none, none, none + 1),
        (-y, x, none), (none, -z, y), (z, none, -x))]  # fmt: skip
    for motion in motions:
        assert np.abs(matrix @ motion).max() < 1e-12
    assert np.linalg.matrix_rank(matrix.toarray()) == 18
    motions = modules[1].rigid_motions(cube)
    assert np.abs(matrix @ motions).max() < 1e-12
    assert np.linalg.matrix_rank(motions) == 6


def with_nodes_on_edges(mesh, edges):
    """The same of ten nodes an element; those below are held from below."""
    ends = np.sort(mesh.elements[:, edges], axis=2).reshape(-1, 2)
    pairs, at = np.unique(ends, axis=0, return_inverse=True)
    middles = len(mesh.points) + at.reshape(-1, 6)
    points = np.concatenate([mesh.points, mesh.points[pairs].mean(axis=1)])
    below = [(node, 2) for node in range(len(mesh.points), len(points)) if points[node, 2] == 0]
    elements = np.concatenate([mesh.elements, middles], axis=1)
    fixed = np.concatenate([mesh.fixed, below])
    return replace(mesh, points=points, elements=elements, fixed=fixed)


def test_ten_nodes_shrink_as_the_material_says(cube, modules):
    _, elasticity, quadratic = modules
    mesh = with_nodes_on_edges(cube, quadratic.EDGES)
    matrix = quadratic.stiffness(mesh)
    assert abs(matrix - matrix.T).max() < 1e-12
    assert np.abs(matrix @ elasticity.rigid_motions(mesh)).max() < 1e-12
    count = matrix.shape[0]
    assert np.linalg.matrix_rank(matrix.toarray()) == count - 6
    free = elasticity.free_directions(mesh)
    forces = quadratic.pressure_forces(mesh)
    assert forces.reshape(-1, 3).sum(axis=0) == pytest.approx([0, 0, -2])
    matrix = matrix.tocsr()[free][:, free]
    found = np.zeros(count)
    found[free] = sparse.Solver(matrix, M="jacobi", devices="cpu").solve(forces[free], rtol=1e-12).x
    strain = np.array([0.25, 0.25, -1]) * 2 / 100
    np.testing.assert_allclose(found.reshape(-1, 3), mesh.points * strain, atol=1e-10)


def test_meshes_may_be_compressed(modules, tmp_path, cube):
    path = tmp_path / "cube.nas.xz"
    path.write_bytes(lzma.compress(CUBE.encode()))
    np.testing.assert_array_equal(modules[0].read_mesh(path).points, cube.points)


def test_a_cube_under_pressure_shrinks_as_the_material_says(cube, modules):
    elasticity = modules[1]
    free = elasticity.free_directions(cube)
    forces = elasticity.pressure_forces(cube)
    assert forces.reshape(-1, 3).sum(axis=0) == pytest.approx([0, 0, -2])
    matrix = elasticity.stiffness(cube).tocsr()[free][:, free]
    x, info = sparse.cg(matrix, forces[free], rtol=1e-12, M="jacobi", devices="emulated:2")
    assert info == 0
    found = np.zeros(24)
    found[free] = x
    strain = np.array([0.25, 0.25, -1]) * 2 / 100
    np.testing.assert_allclose(found.reshape(8, 3), cube.points * strain, atol=1e-10)


@pytest.mark.parametrize("nodes", [4, 10])
def test_heat_flows_straight_through_a_cube(cube, modules, nodes):
    import heat

    mesh = cube if nodes == 4 else with_nodes_on_edges(cube, modules[2].EDGES)
    matrix = heat.conduction(mesh, 2.0)
    assert abs(matrix - matrix.T).max() < 1e-12
    assert np.abs(matrix @ np.ones(len(mesh.points))).max() < 1e-12
    flows = heat.inflow(mesh, 3.0)
    assert flows.sum() == pytest.approx(3)
    held = heat.held_nodes(mesh)
    assert (mesh.points[held, 2] == 0).all()
    free = np.setdiff1d(np.arange(len(mesh.points)), held)
    x, info = sparse.cg(matrix[free][:, free], flows[free], rtol=1e-12, devices="cpu")
    assert info == 0
    np.testing.assert_allclose(x, 1.5 * mesh.points[free, 2], atol=1e-10)


def test_a_picture_shows_the_surface_from_outside(cube, modules, tmp_path):
    import picture

    triangles = picture.surface(cube.points, cube.elements)
    assert len(triangles) == 12
    a, b, c = cube.points[triangles].transpose(1, 0, 2)
    outward = np.cross(b - a, c - a)
    assert (np.einsum("ij,ij->i", outward, (a + b + c) / 3 - 0.5) > 0).all()
    right, up, front = picture.view(cube)
    np.testing.assert_allclose(np.cross(right, up), front, atol=1e-12)
    assert up[2] > 0 and front[2] > 0
    path = tmp_path / "cube.png"
    picture.draw(path, cube, [("Height", "mm", cube.points[:, 2], np.zeros((8, 3)))])
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not MESH.exists(), reason=f"{MESH} isn't there: apt-get install z88-data")
def test_the_piston_converges(tmp_path):
    run = subprocess.run([sys.executable, EXAMPLE / "main.py", MESH, "cpu"], cwd=tmp_path,
                         capture_output=True, text=True, timeout=600)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "168465 rows, 6806997 matrix elements" in run.stdout
    displacements, temperatures = map(int, re.findall(r"converged after (\d+)", run.stdout))
    assert 30 < displacements < 60  # by Jacobi 1,570
    assert 10 < temperatures < 30
    assert (tmp_path / "piston.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "piston.html").read_text()
