# SPDX-License-Identifier: BSD-3-Clause
# tests/python/package_test.py: the installed package, its version and its type information.
import importlib.metadata
import importlib.resources

import quadriga


def test_version_is_that_of_the_distribution():
    assert quadriga.__version__ == importlib.metadata.version("quadriga")


def test_package_is_typed():
    assert importlib.resources.files(quadriga).joinpath("py.typed").is_file()
