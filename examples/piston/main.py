# SPDX-License-Identifier: BSD-3-Clause
# examples/piston/main.py: how a piston bends under pressure and how hot it gets, by conjugate
# gradients. The mesh is in Debian's package z88-data.
"""A piston of aluminium, pressed and heated from above: displacements, temperatures, a picture."""

import argparse
import sys
import time
from pathlib import Path

import elasticity
import heat
import numpy as np
import quadratic
from nastran import read_mesh
from picture import draw

import quadriga
from quadriga import report, sparse

MESH = Path("/usr/share/z88/b21_lin_g.nas")
CONDUCTIVITY = 0.15  # of the alloy, in W/(mm K)
FLUX = 0.2  # into the crown, in W/mm²
HELD = 120  # where it is held, in degrees Celsius
SHOWN = 0.05  # of the piston's size: the largest displacement in the picture


def solve(engine, what, matrix, right, M):
    solver = sparse.Solver(matrix, M=M, engine=engine)
    print(f"{what}: {matrix.shape[0]} rows, {matrix.nnz} matrix elements")
    print("rows by level:", *(level["rows"] for level in solver.plan["levels"]))
    for part, halo in enumerate(solver.plan["halo_rows"]):
        print(f"part {part}: needs {halo} values of others")
    result = solver.solve(right, rtol=1e-8)
    print(f"{result.reason} after {result.iterations} iterations in {result.seconds:.1f} s")
    print(f"residual {result.residual / np.linalg.norm(right):.2e} of the right side")
    if result.info != 0:
        sys.exit(f"{what}: {result.reason}")
    return result.x


def displacements(engine, mesh):
    """In millimetres, (nodes, 3)."""
    free = elasticity.free_directions(mesh)
    shapes = quadratic if mesh.elements.shape[1] == 10 else elasticity
    matrix = shapes.stiffness(mesh).tocsr()[free][:, free]
    levels = sparse.Aggregation(elasticity.rigid_motions(mesh)[free])
    found = np.zeros((len(mesh.points), 3))
    forces = shapes.pressure_forces(mesh)[free]
    found.ravel()[free] = solve(engine, "displacements", matrix, forces, levels)
    return found


def temperatures(engine, mesh):
    """In degrees Celsius, (nodes,)."""
    free = np.setdiff1d(np.arange(len(mesh.points)), heat.held_nodes(mesh))
    matrix = heat.conduction(mesh, CONDUCTIVITY)[free][:, free]
    found = np.full(len(mesh.points), float(HELD))
    flows = heat.inflow(mesh, FLUX)[free]
    found[free] += solve(engine, "temperatures", matrix, flows, sparse.Aggregation())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mesh", nargs="?", type=Path, default=MESH, help="a NASTRAN file")
    parser.add_argument("devices", nargs="?", default="emulated:2")
    parser.add_argument("--picture", type=Path, default=Path("piston.png"))
    parser.add_argument("--report", type=Path, default=Path("piston.html"))
    given = parser.parse_args()
    if not given.mesh.exists():
        print(f"{given.mesh} isn't there: apt-get install z88-data")
        return
    begin = time.perf_counter()
    mesh = read_mesh(given.mesh)
    print(f"{len(mesh.elements)} elements, read in {time.perf_counter() - begin:.1f} s")
    with quadriga.Engine(given.devices, trace=True) as engine:
        moved = displacements(engine, mesh)
        warm = temperatures(engine, mesh)
        trace = given.report.with_suffix(".json")
        engine.save_trace(trace)
    report.write_report(trace, given.report)
    lengths = np.linalg.norm(moved, axis=1)
    most = lengths.argmax()
    print(f"the point {mesh.points[most].round(1)} moves most: {moved[most].round(4)} mm")
    print(f"the point {mesh.points[warm.argmax()].round(1)} is hottest: {warm.max():.0f} °C")
    enlarged = SHOWN * np.ptp(mesh.points, axis=0).max() / max(lengths.max(), 1e-300)
    draw(given.picture, mesh, [
        (f"Displacement under pressure ({enlarged:.0f} times)", "mm", lengths, enlarged * moved),
        ("Temperature", "°C", warm, 0 * moved),
    ])  # fmt: skip
    print(f"wrote {given.picture}, {given.report} and {trace}")


if __name__ == "__main__":
    main()
