# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_bench_sparse.py: sparse products and solves beside SciPy, and their matrices.
import click.testing
import numpy as np
import pytest
import scipy.sparse
from test_bench import run_json

from quadriga.bench import commands, measure
from quadriga.bench.elasticity import box_stiffness
from quadriga.cli.main import MISUSED


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2"])
def test_sparse_products_and_solves_beside_scipy(devices):
    found = run_json("spmv", "--n", "6", "--repeat", "2", "--devices", devices)
    assert [row["case"] for row in found] == [
        case for case in measure.CASES["spmv"] if not case.endswith("-file")
    ]
    for row in found:
        assert row["unit"] == "GFLOP/s"
        assert row["n"] == (3 * 7 * 6 * 6 if row["case"].endswith("elastic") else 216)
        if row["case"].startswith("ellpack"):
            assert row["value"] is None and "ELLPACK would take" in row["refused"]
            continue
        assert row["value"] > 0 and row["reference_value"] > 0 and row["bound"] > 0
        assert row["value"] == pytest.approx(2e-9 * row["elements"] / row["seconds"])
        assert row["dense_rows"] == 3 if row["case"] == "blocks-elastic" else True
    stored = {row["case"]: row.get("bytes_per_element") for row in found}
    assert stored["blocks-elastic"] < 10 < stored["csr-elastic"]


def test_sparse_products_of_files(tmp_path):
    path = tmp_path / "a.npz"
    scipy.sparse.save_npz(path, box_stiffness((3, 4, 5)))
    words = ["--case", "blocks-file", "--repeat", "1", "--matrix", str(path)]
    (row,) = run_json("spmv", *words)
    assert row["n"] == 180 and row["dense_rows"] == 3
    lacking = click.testing.CliRunner().invoke(commands.bench, ["spmv", "--case", "csr-file"])
    assert lacking.exit_code == MISUSED and "--matrix" in lacking.output


def test_sparse_products_that_do_not_fit_are_refused_with_the_figure():
    words = ["--case", "csr-27", "--n", "40", "--devices", "emulated:1,memory=1MiB"]
    (row,) = run_json("spmv", *words)
    assert row["value"] is None and row["refused"] == "CSR takes 0.0197 GB, devices have 0.00105"
    shown = click.testing.CliRunner().invoke(commands.bench, ["spmv", *words])
    assert shown.exit_code == 0 and "devices have" in shown.output


def test_the_stiffness_of_a_box_is_positive_definite():
    a = box_stiffness((6, 5, 4))
    assert a.shape == (360, 360) and abs(a - a.T).max() == 0
    assert np.linalg.eigvalsh(a.toarray())[0] > 0
    free = box_stiffness((6, 5, 4)).toarray()[150:210, :]
    moved = np.tile([1.0, 0.0, 0.0], 120)
    assert np.abs(free @ moved).max() < 1e-12  # A body that moves as a whole has no stress.
