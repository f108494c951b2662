# SPDX-License-Identifier: BSD-3-Clause
# examples/piston/main.py: how a piston bends under pressure, by conjugate gradients.
# The mesh is in Debian's package z88-data; other files as arguments: main.py MESH [DEVICES].
"""Displacements of a clamped piston of aluminium, in millimetres."""

import sys
import time
from pathlib import Path

import elasticity
import numpy as np
import quadratic
from elasticity import free_directions, rigid_motions
from nastran import read_mesh

import quadriga
from quadriga import sparse

MESH = "/usr/share/z88/b21_lin_g.nas"

path = Path(sys.argv[1] if len(sys.argv) > 1 else MESH)
devices = sys.argv[2] if len(sys.argv) > 2 else "emulated:2"
if not path.exists():
    print(f"{path} isn't there: apt-get install z88-data")
    sys.exit(0)

begin = time.perf_counter()
mesh = read_mesh(path)
free = free_directions(mesh)
shapes = quadratic if mesh.elements.shape[1] == 10 else elasticity
matrix = shapes.stiffness(mesh).tocsr()[free][:, free]
forces = shapes.pressure_forces(mesh)
assembled = time.perf_counter()
print(f"{len(mesh.elements)} elements, {matrix.shape[0]} rows, {matrix.nnz} matrix elements")
print(f"read and assembled in {assembled - begin:.1f} s")

with quadriga.Engine(devices) as engine:
    levels = sparse.Aggregation(rigid_motions(mesh)[free])
    solver = sparse.Solver(matrix, M=levels, engine=engine)
    print("rows by level:", *(level["rows"] for level in solver.plan["levels"]))
    for part, halo in enumerate(solver.plan["halo_rows"]):
        print(f"part {part}: needs {halo} displacements of others")
    result = solver.solve(forces[free], rtol=1e-8)

print(f"{result.reason} after {result.iterations} iterations in {result.seconds:.1f} s")
print(f"residual {result.residual / np.linalg.norm(forces[free]):.2e} of the forces")
displacements = np.zeros((len(mesh.points), 3))
displacements.ravel()[free] = result.x
lengths = np.linalg.norm(displacements, axis=1)
most = lengths.argmax()
print(f"the point {mesh.points[most].round(1)} moves most: {displacements[most].round(4)} mm")
assert result.info == 0
