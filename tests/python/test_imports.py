# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_imports.py: each module imports alone, and no imports form a circle.
"""Imports inside functions and under TYPE_CHECKING count: they hide a circle, they don't end it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import quadriga

FOLDER = Path(quadriga.__file__).parent


def modules(folder):
    """Path of each module of a package, by its full name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules(FOLDER)


def imported(name, known):
    """The modules of the package that one names; what each is inside of is imported anyhow."""
    path = known[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = parts if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                # The package stands for itself only where it gives a name of its own.
                found.add(inner if inner in known or alias.name == "_core" else base)
    return found & set(known)


def circle(graph):
    """The names along a circle, the first one again at its end; empty if there is none."""
    ended, path = set(), []

    def follow(name):
        if name in path:
            return [*path[path.index(name) :], name]
        if name in ended:
            return []
        path.append(name)
        for each in sorted(graph[name]):
            if found := follow(each):
                return found
        ended.add(path.pop())
        return []

    return next((found for name in sorted(graph) if (found := follow(name))), [])


def test_no_imports_form_a_circle():
    graph = {name: imported(name, MODULES) for name in MODULES}
    assert "quadriga.engine" in graph["quadriga"]
    assert circle(graph) == []


# Rooms of quadriga.report: one uses only those before it.
ROOMS = ["trace", "analysis", "render"]


def forbidden(graph):
    """Imports of report's rooms from a room before them."""
    rank = {room: at for at, room in enumerate(ROOMS)}
    rooms = {name: name.split(".")[2] for name in graph if name.count(".") >= 2}
    return [
        (name, other)
        for name in graph
        for other in graph[name]
        if rank.get(rooms.get(name), len(ROOMS)) < rank.get(rooms.get(other), 0)
    ]


def test_rooms_of_the_report_use_only_those_before_them():
    found = modules(FOLDER / "report")
    known = {f"quadriga.{name}": path for name, path in found.items()}
    graph = {name: imported(name, known) for name in known}
    assert {name.split(".")[2] for name in graph if name.count(".") == 3} == set(ROOMS)
    assert forbidden(graph) == []
    graph["quadriga.report.trace.reading"].add("quadriga.report.render.page")
    assert forbidden(graph) == [("quadriga.report.trace.reading", "quadriga.report.render.page")]


@pytest.mark.parametrize(
    "second",
    [
        "from . import first",
        "from .first import value",
        "import package.first",
        "def later():\n    from . import first",
    ],
)
def test_a_circle_is_found(tmp_path, second):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from .second import value")
    (package / "second.py").write_text(second)
    known = modules(package)
    graph = {name: imported(name, known) for name in known}
    assert circle(graph) == ["package.first", "package.second", "package.first"]


ALONE = """
import importlib, os, sys
for each in ("click", "jinja2", "matplotlib.figure", "numpy", "rich.progress", "scipy.optimize"):
    importlib.import_module(each)  # once, for they take longest
import quadriga  # which comes first whatever module of it is named
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        importlib.import_module(name)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"import {name}: see above")
"""


def test_each_module_imports_alone():
    """Each in a process that knows only those that the package itself takes."""
    subprocess.run([sys.executable, "-c", ALONE, *MODULES], check=True, timeout=600)
