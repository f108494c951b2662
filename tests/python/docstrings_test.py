# SPDX-License-Identifier: BSD-3-Clause
# tests/python/docstrings_test.py: runs the examples in the installed package's docstrings.
import doctest
import importlib
import pkgutil

import pytest

import quadriga

MODULES = sorted(module.name for module in pkgutil.walk_packages(quadriga.__path__, "quadriga."))


@pytest.mark.parametrize("name", ["quadriga", *MODULES])
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
