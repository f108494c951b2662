# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_tf32.py: the setting that lets GPUs round float32 products to TF32.
import numpy as np
import pytest

import quadriga
from quadriga import linalg

ABSENCE = quadriga._core.Machine.cuda_absence()
on_gpu = pytest.mark.skipif(bool(ABSENCE), reason=ABSENCE)
TF32_ROUNDING = 2.0**-11


def factors(dtype, rows=1536, cols=1024):
    random = np.random.default_rng(7)
    made = random.standard_normal((2, rows, cols))
    if np.dtype(dtype).kind == "c":
        made = made + 1j * random.standard_normal(made.shape)
    return made.astype(dtype)


def error_of(product, a, b):
    """The largest error, as a part of the sum of the products' magnitudes."""
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    return (np.abs(product - exact) / (np.abs(a).astype(float) @ np.abs(b).astype(float))).max()


def test_off_unless_asked_for():
    assert quadriga.config.allow_tf32 is False
    with pytest.raises(quadriga.InvalidArgument, match="allow_tf32.*'perhaps'"):
        quadriga.config.allow_tf32 = "perhaps"


def test_cores_take_no_notice(engine):
    a, b = factors(np.float32, 300, 200)
    plain = linalg.matmul(a, b.T, engine=engine, tile=128)
    with quadriga.config(allow_tf32=True):
        assert np.array_equal(linalg.matmul(a, b.T, engine=engine, tile=128), plain)


@on_gpu
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_gpus_round_factors(dtype):
    a, b = factors(dtype)
    with quadriga.Engine("cuda:1") as engine:
        plain = linalg.matmul(a, b.T, engine=engine)
        with quadriga.config(allow_tf32=True):
            rounded = linalg.matmul(a, b.T, engine=engine)
        again = linalg.matmul(a, b.T, engine=engine)
    assert error_of(plain, a, b.T) < TF32_ROUNDING / 256
    assert error_of(rounded, a, b.T) < 4 * TF32_ROUNDING
    if dtype is np.float32:  # complex ones may not have such a kernel
        assert error_of(rounded, a, b.T) > TF32_ROUNDING / 256
    assert np.array_equal(again, plain)


@on_gpu
def test_other_types_and_factorizations_are_as_they_were():
    a, b = factors(np.float64)
    small = (a @ a.T + 1536 * np.eye(1536)).astype(np.float32)
    with quadriga.Engine("cuda:1") as engine:
        plain = linalg.matmul(a, b.T, engine=engine), linalg.cholesky(small, engine=engine)
        with quadriga.config(allow_tf32=True):
            allowed = linalg.matmul(a, b.T, engine=engine), linalg.cholesky(small, engine=engine)
    assert all(np.array_equal(*pair) for pair in zip(plain, allowed, strict=True))
