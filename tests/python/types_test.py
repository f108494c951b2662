# SPDX-License-Identifier: BSD-3-Clause
# tests/python/types_test.py: what mypy infers of results, as a typed program sees them.
import re
import shutil
from pathlib import Path

import pytest

import quadriga

PROGRAM = '''
from typing import Any
import numpy as np
import numpy.typing as npt
import quadriga
from quadriga import linalg, message, sparse
from quadriga.typing import Array, ArrayLike, CudaArray, DLPackArray, SourceLike

class Tensor:
    """As CuPy's and PyTorch's arrays look to a type checker."""
    shape: tuple[int, ...]
    ndim: int
    dtype: object
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any) -> Any: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __array__(self) -> npt.NDArray[Any]: ...

class Ones:
    shape = 3, 3
    dtype = np.float32
    def read(self, rows: slice, cols: slice, out: npt.NDArray[Any]) -> None: ...

a, b, t, n = np.eye(3), np.ones(3), Tensor(), 3
engine = quadriga.Engine("cpu:1")
data = engine.data(a)
comm = message.world()
reveal_type(linalg.solve(a, b, assume_a="pos"))  # ndarray
reveal_type(linalg.solve([[1.0]], [1.0]))  # ndarray
reveal_type(linalg.solve(a, t))  # Tensor
reveal_type(linalg.solve(Ones(), b))  # ndarray
reveal_type(linalg.solve(a, data))  # Array
reveal_type(linalg.solve(linalg.from_function(n, lambda i, j: i == j), b, engine=engine))  # ndarray
reveal_type(linalg.solve_triangular(a, t, trans="T"))  # Tensor
reveal_type(linalg.matmul(a, b))  # ndarray
reveal_type(linalg.matmul(t, t))  # Tensor
reveal_type(linalg.matmul(t, Ones()))  # Array
reveal_type(linalg.matmul(t, a, out=t))  # Tensor
reveal_type(linalg.matmul(a, a, data))  # Data
reveal_type(linalg.cholesky(Ones(), lower=True))  # ndarray
reveal_type(linalg.cholesky(Ones(), out=t))  # Tensor
reveal_type(linalg.syrk(1.0, t, lower=True))  # Tensor
reveal_type(linalg.herk(1.0, a))  # ndarray
factor = linalg.cho_factor(a, devices=quadriga.Machine.parse("cpu:1"))
reveal_type(factor)  # Factor
reveal_type(factor.solve(t))  # Tensor
reveal_type(factor.unpack())  # Array
reveal_type(linalg.cho_solve(factor, b))  # ndarray
reveal_type(linalg.cho_solve((a, True), [1.0, 2.0, 3.0]))  # ndarray
reveal_type(sparse.cg(a, b, M="jacobi")[0])  # ndarray
reveal_type(sparse.cg(sparse.RowBlocks(n, lambda i, j: a[i:j]), b)[1])  # int
reveal_type(sparse.cg(lambda x: 2 * x, t)[0])  # Array
reveal_type(sparse.gmres("matrix.mtx", t)[0])  # ndarray
reveal_type(sparse.Solver(a).solve(b).x)  # ndarray
reveal_type(data)  # Data
reveal_type(engine.data(t).known)  # Array | None
reveal_type(np.asarray(data))  # ndarray
reveal_type(comm.allreduce(b))  # ndarray
reveal_type(comm.bcast(bytearray(3)))  # bytearray
reveal_type(quadriga.Pipeline().results())  # Iterator
'''
WRONG = """
import numpy as np
from quadriga import Engine, linalg, sparse
linalg.solve(np.eye(2))  # call-overload
linalg.solve(np.eye(2), object())  # call-overload
linalg.matmul(np.eye(2), np.eye(2), trans_a="transposed")  # call-overload
linalg.cho_factor(np.eye(2), engine="cpu:2")  # arg-type
sparse.cg(3.5j, np.ones(2), M=object())  # call-overload
Engine().data([1.0, 2.0])  # arg-type
"""


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Mypy's words on a program, by line; the package is looked at once."""
    api = pytest.importorskip("mypy.api")
    folder = tmp_path_factory.mktemp("typed")
    # In a folder of its own, for an installed package may be a link that mypy doesn't follow.
    shutil.copytree(
        Path(quadriga.__file__).parent,
        folder / "quadriga",
        ignore=shutil.ignore_patterns("*.so", "bin", "machines", "__pycache__"),
    )
    stub = Path(quadriga._core.__file__).with_name("_core.pyi")
    shutil.copy(stub, folder / "quadriga")

    def said(program):
        (folder / "program.py").write_text(program)
        options = [
            "--strict",
            "--disable-error-code=empty-body",
            "--ignore-missing-imports",
            "--cache-dir",
            str(folder / "cache"),
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            out, errors, _ = api.run([*options, "--config-file=", "program.py"])
        assert errors == ""
        found = {}
        for number, text in re.findall(r"^program\.py:(\d+): (.*)$", out, re.MULTILINE):
            found.setdefault(int(number), []).append(text)
        return found

    return said


def expected(program):
    lines = enumerate(program.splitlines(), 1)
    return {number: line.rpartition("  # ")[2] for number, line in lines if "  # " in line}


def short(text):
    """A type's name, without its module and what it holds."""
    inside = re.search(r'Revealed type is "(.*)"', text)[1]
    kept = re.sub(r"\[.*\]", "", inside)
    return " | ".join(part.rpartition(".")[2] for part in kept.split(" | "))


def test_results_follow_their_arguments(check):
    found = {number: short(text[0]) for number, text in check(PROGRAM).items()}
    assert found == expected(PROGRAM)


def test_wrong_arguments_are_found(check):
    found = {line: text[0].rpartition("[")[2] for line, text in check(WRONG).items()}
    assert found == {line: f"{kind}]" for line, kind in expected(WRONG).items()}
