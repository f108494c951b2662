# SPDX-License-Identifier: BSD-3-Clause
# bench/sparse_table.py: whole solves of sparse systems on GPUs or others, beside other libraries'.
"""One JSON line a case; `python bench/sparse_table.py CASE... [--devices cuda:2]`.

| case | what |
|---|---|
| columns | milliseconds an iteration and right-hand side: 1 and 16 of them |
| call | seconds of `cg` from SciPy's CSR, 1,000 iterations, on an engine that has run before |
| streamed | an iteration with a quarter of the matrix resident, beside the links' bound |
| aggregation | set-up and solves by aggregation beside Jacobi's; pyamg's iterations |
| graph | an iteration beside one by cuSPARSE and cuBLAS in a CUDA graph (`--peer`); one GPU |
| prepare | no row: the piston's matrix of --mesh as --matrix, a `.npz` file |

The system is `--matrix FILE.npz`, as `scipy.sparse.save_npz` writes it; else elasticity in a box
of `--n` nodes, or with `--points` a grid of n points in each dimension.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import quadriga
from quadriga import sparse
from quadriga.bench.elasticity import box_stiffness

PISTON = Path(__file__).resolve().parents[1] / "examples" / "piston"


def seconds_of(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def least(work, count=3):
    work()
    return min(seconds_of(work) for _ in range(count))


def an_iteration(solve, few=100, many=600):
    """The least of three differences."""
    solve(few)
    return min(
        seconds_of(lambda: solve(many)) - seconds_of(lambda: solve(few)) for _ in range(3)
    ) / (many - few)


def columns(a, b, given):
    row = {}
    with quadriga.Engine(given.devices) as engine:
        solver = sparse.Solver(a, M="jacobi", engine=engine)
        for count in (1, 16):
            right = b if count == 1 else np.random.default_rng(2).standard_normal((a.shape[0], 16))
            taken = an_iteration(lambda k, right=right: solver.solve(right, rtol=0, maxiter=k))
            row[f"milliseconds_{count}"] = 1e3 * taken / count
    return row | {"ratio": row["milliseconds_16"] / row["milliseconds_1"]}


def call(a, b, given):
    with quadriga.Engine(given.devices) as engine:
        found = []

        def work():
            begin = time.perf_counter()
            solver = sparse.Solver(a, M="jacobi", engine=engine)
            made = time.perf_counter()
            solver.solve(b, rtol=0, maxiter=1000)
            found.append((time.perf_counter() - begin, made - begin))

        least(work)
    total, setup = min(found[1:])
    return {"seconds": total, "setup_seconds": setup}


def streamed(a, b, given):
    with quadriga.Engine(given.devices) as engine:
        solver = sparse.Solver(a, engine=engine)
        stored, parts = sum(solver.plan["bytes"]), len(set(solver.plan["devices"]))
    memory = int(stored / 4 / parts) >> 20
    with quadriga.Engine(f"{given.devices},memory={memory}MiB") as engine:
        solver = sparse.Solver(a, engine=engine)
        taken = an_iteration(lambda k: solver.solve(b, rtol=0, maxiter=k), 5, 15)
        plan = solver.plan
    return {
        "milliseconds": 1e3 * taken, "matrix_mb": stored / 1e6, "memory_mib": memory,
        "streamed_mb": plan["streamed_bytes"] / 1e6,
        "bound_milliseconds": 1e3 * plan["streamed_seconds"],
        "of_the_bound": plan["streamed_seconds"] / taken,
    }  # fmt: skip


def aggregation(a, b, given):
    near = None if given.near_null is None else np.load(given.near_null)
    ways = {"jacobi": "jacobi", "aggregation": sparse.Aggregation(near_null=near)}
    row = {}
    with quadriga.Engine(given.devices) as engine:
        for name, m in ways.items():
            begin = time.perf_counter()
            solver = sparse.Solver(a, M=m, engine=engine)
            made = time.perf_counter()
            result = solver.solve(b, rtol=1e-8, maxiter=50000)
            row[f"{name}_setup_seconds"] = made - begin
            row[f"{name}_seconds"] = time.perf_counter() - made
            row[f"{name}_next_seconds"] = least(
                lambda s=solver: s.solve(b, rtol=1e-8, maxiter=50000), 1
            )
            row[f"{name}_iterations"], row[f"{name}_reason"] = result.iterations, result.reason
    try:
        import pyamg
    except ImportError:
        return row | {"pyamg": "isn't installed"}
    begin = time.perf_counter()
    hierarchy = pyamg.smoothed_aggregation_solver(a.tocsr(), B=near)
    row["pyamg_setup_seconds"] = time.perf_counter() - begin
    residuals = []
    begin = time.perf_counter()
    hierarchy.solve(b, tol=1e-8, accel="cg", residuals=residuals, maxiter=500)
    row["pyamg_seconds"] = time.perf_counter() - begin
    return row | {"pyamg_iterations": len(residuals) - 1}


def graph(a, b, given):
    """The peer is a program, as CuPy refuses cuSPARSE while a graph is recorded."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = (("indptr", np.int32), ("indices", np.int32), ("data", np.float64))
        for name, dtype in arrays:
            np.save(Path(folder) / f"{name}.npy", getattr(a, name).astype(dtype))
        told = subprocess.run(
            [given.peer, folder], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    peers = [json.loads(line) for line in told.splitlines()]
    with quadriga.Engine(given.devices) as engine:
        solver = sparse.Solver(a, M="jacobi", engine=engine)
        ours = 1e3 * an_iteration(lambda k: solver.solve(b, rtol=0, maxiter=k))
    best = min(each["milliseconds"] for each in peers)
    return {"milliseconds": ours, "peers": peers, "times_as_fast": best / ours}


def prepare(given):
    sys.path.insert(0, str(PISTON))
    import elasticity
    import nastran
    import quadratic
    from scipy.sparse import save_npz

    mesh = nastran.read_mesh(given.mesh)
    free = elasticity.free_directions(mesh)
    made = quadratic if mesh.elements.shape[1] == 10 else elasticity
    a = made.stiffness(mesh).tocsr()[free][:, free]
    save_npz(given.matrix, a, compressed=False)
    np.save(given.matrix.with_suffix(".forces.npy"), made.pressure_forces(mesh)[free])
    np.save(given.matrix.with_suffix(".motions.npy"), elasticity.rigid_motions(mesh)[free])


def system(given):
    if given.matrix is not None:
        from scipy.sparse import load_npz

        forces = given.matrix.with_suffix(".forces.npy")
        a = load_npz(given.matrix).tocsr()
        if forces.exists():
            return a, np.load(forces)
    elif given.points is not None:
        a = sparse.poisson((given.n,) * 3, given.points)
    else:
        a = box_stiffness((given.n + 1, given.n, given.n))
    return a, np.random.default_rng(1).standard_normal(a.shape[0])


CASES = {each.__name__: each for each in (columns, call, streamed, aggregation, graph)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", choices=[*CASES, "prepare"], metavar="CASE")
    parser.add_argument("--devices", default="cuda:1")
    parser.add_argument("--n", type=int, default=77)
    parser.add_argument("--points", type=int, choices=[7, 27])
    parser.add_argument("--matrix", type=Path, metavar="FILE.npz")
    parser.add_argument("--mesh", type=Path, help="NASTRAN bulk data, for prepare; also .xz")
    peer = "build/release/bench/quadriga-bench-sparse-graph"
    parser.add_argument("--peer", default=peer, metavar="PROGRAM", help="of the case graph")
    parser.add_argument("--near-null", type=Path, metavar="FILE.npy")
    given = parser.parse_args()
    if "prepare" in given.cases:
        prepare(given)
        return
    a, b = system(given)
    about = {"rows": a.shape[0], "elements": int(a.nnz), "devices": given.devices}
    for name in given.cases:
        print(json.dumps({"case": name, **about, **CASES[name](a, b, given)}), flush=True)


if __name__ == "__main__":
    main()
