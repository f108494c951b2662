# SPDX-License-Identifier: BSD-3-Clause
# tests/python/docstrings_test.py: examples in docstrings run; all public names have docstrings.
import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import quadriga
from quadriga import linalg, pipeline, report

MODULES = sorted(module.name for module in pkgutil.walk_packages(quadriga.__path__, "quadriga."))


@pytest.mark.parametrize("name", ["quadriga", *MODULES])
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def documented():
    """All public classes and functions and their own public members, with what documents them."""
    for module in (quadriga, linalg, pipeline, report):
        for name in module.__all__:
            found = getattr(module, name)
            is_ours = getattr(found, "__module__", "").startswith("quadriga")
            if not is_ours or not (inspect.isclass(found) or inspect.isfunction(found)):
                continue
            yield f"{module.__name__}.{name}", found
            for member, inner in vars(found).items() if inspect.isclass(found) else ():
                inner = inner.__func__ if isinstance(inner, (classmethod, staticmethod)) else inner
                is_code = inspect.isfunction(inner) or isinstance(inner, property)
                if is_code and not member.startswith("_"):
                    yield f"{module.__name__}.{name}.{member}", inner


def untold(found):
    """What a docstring lacks: itself, or parameters that its list of them leaves out."""
    text = found.__doc__ or ""
    if not text.strip():
        return ["a docstring"]
    listed = re.search(r"Parameters\n *-+\n(.*?)(\n *\n *\w+\n *-+|$)", text, re.DOTALL)
    if listed is None or isinstance(found, property):
        return []
    of = found.__init__ if inspect.isclass(found) else found
    names = [name for name in inspect.signature(of).parameters if name not in ("self", "cls")]
    return [name for name in names if not re.search(rf"\b{name}\b", listed[1])]


# What a base class says of these holds for them too.
INHERITED = {"quadriga.linalg.Covariance", "quadriga.linalg.FunctionSource"}


@pytest.mark.parametrize(
    ("name", "found"), [pytest.param(*each, id=each[0]) for each in documented()]
)
def test_public_names_are_documented_with_all_their_parameters(name, found):
    if name.rpartition(".")[0] not in INHERITED:
        assert untold(found) == []


def test_a_parameter_that_is_left_out_is_found():
    def solve(a, b):
        """Solve.

        Parameters
        ----------
        a : array_like
        """

    assert untold(solve) == ["b"]
    assert untold(lambda: None) == ["a docstring"]
