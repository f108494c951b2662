# SPDX-License-Identifier: BSD-3-Clause
# tests/python/signatures_test.py: public signatures say what they take and return.
import inspect
import types
import typing
from typing import Any

import pytest
from names_test import MODULES

# Where anything is meant, and why.
ANYTHING = {
    "quadriga.Future.result": "what the task's body returns",
    "quadriga.typing.SparseArray.tocsr": "a type of the library that isn't installed, maybe",
    "quadriga.typing.LinearOperator.matvec": "as the operator likes",
    "quadriga.typing.Group.bcast": "MPI sends any object",
}
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def functions_of(name, kind):
    """A class's constructor and its public methods and properties, the package's own."""
    for key, value in inspect.getmembers_static(kind):
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        is_ours = (getattr(value, "__module__", None) or "").startswith("quadriga")
        is_ours = is_ours or hasattr(value, "__nb_signature__")
        is_made = key == "__init__" and not getattr(kind, "_is_protocol", False)
        if callable(value) and is_ours and (is_made or not key.startswith("_")):
            yield f"{name}.{key}", value


def public_functions():
    for module in MODULES:
        for name in module.__all__:
            each, full = getattr(module, name), f"{module.__name__}.{name}"
            if inspect.isclass(each):
                yield from functions_of(full, each)
            elif inspect.isroutine(each):
                yield full, each


FUNCTIONS = dict(public_functions())


def is_anything(hint):
    """Any, also as one of several."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return hint is Any or (is_union and Any in typing.get_args(hint))


def faults(function):
    """What a reader of the signature misses."""
    text = getattr(function, "__nb_signature__", None)
    if text is not None:  # of the extension module
        return [] if all("->" in each[0] for each in text) else ["return"]
    parameters = inspect.signature(function).parameters.values()
    wanted = [
        p.name for p in parameters if p.kind not in _VARIADIC and p.name not in ("self", "cls")
    ]
    hints = typing.get_type_hints(function)
    return [name for name in [*wanted, "return"] if name not in hints or is_anything(hints[name])]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_says_its_types(name):
    assert faults(FUNCTIONS[name]) == [] or name in ANYTHING


@pytest.mark.parametrize("name", ANYTHING)
def test_where_anything_is_meant_it_says_so(name):
    assert faults(FUNCTIONS[name]) != []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_names_its_types(name):
    """Unions that have a name are not written out."""
    if not hasattr(FUNCTIONS[name], "__nb_signature__"):
        for each in inspect.signature(FUNCTIONS[name]).parameters.values():
            assert len(str(each.annotation)) < 80


def test_missing_types_are_found():
    def bare(a, b: Any, c: "Any | None" = None, *rest, d: int = 0, **options):
        return a

    def unresolved(a: "Unknown") -> None: ...  # noqa: F821

    assert faults(bare) == ["a", "b", "c", "return"]
    with pytest.raises(NameError):
        faults(unresolved)


def test_all_public_functions_are_looked_at():
    assert {"quadriga.Engine.submit", "quadriga.linalg.solve", "quadriga.linalg.Factor.__init__",
            "quadriga.Data.array", "quadriga.message.Status.tag"} <= set(FUNCTIONS)  # fmt: skip
