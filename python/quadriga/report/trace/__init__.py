# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/trace/__init__.py: a trace file, read and checked.
"""What a trace file holds; knows nothing of what follows from it."""
