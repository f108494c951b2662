# SPDX-License-Identifier: BSD-3-Clause
# tests/python/gpus_of_tests.py: whether there is a GPU for the tests that need one.
"""Marks tests that run on a GPU, and says why they don't where there is none."""

import pytest

import quadriga

try:
    quadriga.Machine.parse("cuda:1")
    ABSENCE = ""
except quadriga.errors.Unavailable as error:
    ABSENCE = str(error)
on_gpu = pytest.mark.skipif(bool(ABSENCE), reason=ABSENCE)
