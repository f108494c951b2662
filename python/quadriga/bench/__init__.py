# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/__init__.py: the measurements behind `quadriga bench`.
"""Benchmarks: each case answers one question, names what it is compared with and its best value.

Examples
--------
>>> from quadriga import bench
>>> for row in bench.overhead(cases=["malloc"]):   # doctest: +SKIP
...     print(row["value"], row["unit"])
0.0 calls/task
"""

from .measure import CASES, copies, gemm, overhead, potrf, streams

__all__ = ["CASES", "copies", "gemm", "overhead", "potrf", "streams"]
