# SPDX-License-Identifier: BSD-3-Clause
# tests/large/wide_product.py: a product with more elements than 32 bits count; 9 GB, half a minute.
"""Run by hand: ``.venv/bin/python tests/large/wide_product.py``."""

import numpy as np

from quadriga import linalg

ORDER, INNER = 47_000, 64

rng = np.random.default_rng(0)
a = rng.random((ORDER, INNER), dtype=np.float32)
b = rng.random((INNER, ORDER), dtype=np.float32)
c = linalg.matmul(a, b, progress=True)
assert c.size > 2**31

for rows in (slice(0, 100), slice(20_000, 20_100), slice(ORDER - 100, ORDER)):
    for cols in (slice(0, 100), slice(30_000, 30_100), slice(ORDER - 100, ORDER)):
        np.testing.assert_allclose(c[rows, cols], a[rows] @ b[:, cols], rtol=1e-5)
print(f"{ORDER} x {INNER} x {ORDER}: {c.size} elements, {c.size - 2**31} more than 2**31; right")
