# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/__init__.py: what a trace says about its run.
"""What a run did with its time, from its events; knows nothing of pages and pictures."""
