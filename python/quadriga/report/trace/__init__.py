# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/trace/__init__.py: a trace file, read and checked.
"""Trace files: reading and checking them."""
