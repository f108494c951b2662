# SPDX-License-Identifier: BSD-3-Clause
# tests/python/gpus_of_tests.py: whether there is a GPU for the tests that need one.
"""Marks tests that run on a GPU, and says why they don't where there is none."""

import pytest

import quadriga


def absence(gpus):
    """Why there aren't so many GPUs; empty if there are."""
    try:
        quadriga.Machine.parse(f"cuda:{gpus}")
        return ""
    except quadriga.Error as error:
        return str(error)


ABSENCE = absence(1)
on_gpu = pytest.mark.skipif(bool(ABSENCE), reason=ABSENCE)
on_two_gpus = pytest.mark.skipif(bool(absence(2)), reason=absence(2))
