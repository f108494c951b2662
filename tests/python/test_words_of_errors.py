# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_words_of_errors.py: errors name what was wrong, and what was expected.
"""Each with the value that was given."""

import functools

import numpy as np
import pytest

import quadriga
from quadriga import linalg, message, sparse

POINTS = np.random.default_rng(1).random((5, 2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variance": -1}, "variance is -1; expected a finite number above 0"),
        ({"nugget": np.inf}, "nugget is inf; expected a finite number of at least 0"),
        ({"length_scale": [1.0, 0.0]}, r"length_scale\[1\] is 0; expected a finite number above 0"),
    ],
)
def test_covariances(options, words):
    with pytest.raises(quadriga.InvalidArgument, match=words):
        linalg.cholesky(linalg.rbf(POINTS, **options))


def test_devices_of_messages():
    devices = message.Devices("emulated:2,memory=1MiB")
    with pytest.raises(quadriga.InvalidArgument, match="device 2; expected 0 to 1"):
        devices.empty(8, device=2)
    with pytest.raises(quadriga.TooLarge, match="device 1 has no 8000000 bytes of memory left"):
        devices.empty(1_000_000, device=1)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("abc", "a token of 3 characters; expected 32 hexadecimal digits"),
        ("0" * 30 + "xy", "a token has 'xy' at 30; expected 32 hexadecimal digits"),
    ],
)
def test_tokens(token, words):
    with pytest.raises(quadriga.InvalidArgument, match=words):
        message.join("tcp:127.0.0.1:1", 0, 2, token, deadline=1)


def test_a_factor_on_what_is_no_file(tmp_path):
    factor = linalg.cho_factor(np.eye(3))
    with pytest.raises(quadriga.IoError, match="not a regular file; expected one, which is repl"):
        factor.save("/dev/full")


def test_sparse_matrices_of_negative_offsets():
    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.eye_array(3, format="csr")
    matrix.indptr = np.array([0, 2, 1, 3])
    with pytest.raises(quadriga.InvalidArgument, match="row 1 begins at 2 and ends at 1"):
        sparse.Solver(matrix)


def test_vectors_that_are_sparse():
    scipy = pytest.importorskip("scipy.sparse")
    solver = sparse.Solver(sparse.poisson((3,)))
    column = scipy.csr_array(np.ones((3, 1)))
    for use in (solver.solve, solver.__matmul__, lambda b: sparse.cg(sparse.poisson((3,)), b)):
        with pytest.raises(quadriga.InvalidType, match="sparse csr_array, expected its toarray"):
            use(column)
    with pytest.raises(TypeError, match="unsupported operand"):
        np.ones(3) @ solver


def generates(x):
    yield x


async def waits(x):
    x += 1


@pytest.mark.parametrize("body", [generates, waits])
def test_bodies_that_a_call_does_not_run(body):
    with pytest.raises(quadriga.InvalidType, match=f"'{body.__name__}' is a generator or a corou"):
        quadriga.codelet(access=["update"])(body)


def test_partials_are_named_as_what_they_call():
    assert quadriga.codelet(access=["read"])(functools.partial(np.sum, axis=0)).name == "sum"


def test_values_are_no_operands():
    add = quadriga.codelet(access=["read"])(np.sum)
    words = r"operand 0 .* is int; .* values by name"
    with quadriga.Engine("cpu:1") as engine, pytest.raises(quadriga.InvalidType, match=words):
        engine.submit(add, 3)


def test_a_failure_that_was_forgotten_still_names_the_task():
    @quadriga.codelet(access=["write"])
    def fail(_):
        raise ValueError("on purpose")

    @quadriga.codelet(access=["read"])
    def read(_):
        return

    with quadriga.Engine("cpu:2") as engine:
        x = engine.temporary(1)
        first = engine.submit(fail, x.write())
        for _ in range(4200):  # more failures than are kept
            engine.submit(fail, engine.temporary(1).write())
        with pytest.raises(ValueError, match="on purpose"):
            engine.wait()
        with pytest.raises(quadriga.Cancelled) as raised:
            engine.submit(read, x.read()).result()
        said = f"task {first.id}, which should have written its operand 0, failed"
        assert said in str(raised.value)
