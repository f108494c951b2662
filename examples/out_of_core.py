# SPDX-License-Identifier: BSD-3-Clause
# examples/out_of_core.py: a linear system larger than all devices together, solved on them.
"""Solves with a 32 MB matrix on two emulated devices of 8 MB each, with SciPy's words."""

import numpy as np

import quadriga
from quadriga import linalg

ORDER = 2000

rng = np.random.default_rng(0)
a = rng.standard_normal((ORDER, ORDER))
a = (a + a.T) / 2 + 2 * np.sqrt(ORDER) * np.eye(ORDER)
b = rng.standard_normal(ORDER)

with quadriga.Engine("emulated:2,memory=8MB,h2d=6GB/s,d2h=6GB/s") as engine:
    x = linalg.solve(a, b, lower=True, assume_a="pos", tile=250)

    # The same in two steps: the factor stays where it is, for further right-hand sides.
    factor = linalg.cho_factor(a, lower=True, tile=250)
    again = factor.solve(b)
    print(factor, "log-determinant", round(factor.logdet(), 3))

    counters = engine.counters()
    print(f"matrix {a.nbytes / 1e6:.0f} MB, devices {2 * 8} MB")
    print(counters)

residual = np.linalg.norm(a @ x - b) / (np.linalg.norm(a) * np.linalg.norm(x))
assert residual < 1e-14, residual
assert np.array_equal(x, again)
assert counters.bytes > a.nbytes / 2  # it really went there
print(f"backward error {residual:.1e}")
