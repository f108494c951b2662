# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/__init__.py: a run for people and other programs.
"""Pages, pictures and exports of an analysed run."""
