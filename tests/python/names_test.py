# SPDX-License-Identifier: BSD-3-Clause
# tests/python/names_test.py: public names: what completion shows, what the reference lists.
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadriga
from quadriga import formats, linalg, message, pipeline, report, sparse

REFERENCE = (Path(__file__).resolve().parents[2] / "docs" / "reference.md").read_text()
# From a heading to the next one of its level, or above.
SECTIONS = {
    "quadriga": "## Python\n(.*?)\n### quadriga.linalg",
    "quadriga.linalg": "### quadriga.linalg\n(.*?)\n### ",
    "quadriga.formats": "### quadriga.formats\n(.*?)\n### ",
    "quadriga.message": "### quadriga.message\n(.*?)\n### ",
    "quadriga.sparse": "### quadriga.sparse\n(.*?)\n### ",
    "quadriga.pipeline": "## Python\n(.*?)\n### quadriga.linalg",
    "quadriga.report": "### quadriga.report\n(.*?)\n### ",
    "quadriga.typing": "### quadriga.typing\n(.*?)\n## ",
}
# What other modules of the package use of its objects; some are words of the reference, too.
INTERNAL = {"core", "core_without", "refuse_taken", "taken", "place", "number"}
MODULES = [quadriga, formats, linalg, message, pipeline, report, sparse, quadriga.typing]


def listed(text):
    """The words inside of code."""
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_completion_shows_public_names_only(module):
    assert set(dir(module)) == set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_the_reference_lists_every_public_name(module):
    section = re.search(SECTIONS[module.__name__], REFERENCE, re.DOTALL)[1]
    errors = re.search("## Errors\n(.*)", REFERENCE, re.DOTALL)[1]
    names = {name for name in module.__all__ if not name.startswith("__")}
    assert names - listed(section) - listed(errors) == set()


@pytest.mark.parametrize(
    "kind",
    [quadriga.Engine, quadriga.Data, quadriga.Future, quadriga.Machine, linalg.Factor],
    ids=lambda kind: kind.__name__,
)
def test_the_reference_lists_every_public_member(kind):
    names = {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}
    names -= {"core"}  # the extension module's side of it
    assert names - listed(REFERENCE) == set()


def objects():
    """One of each public class that a program gets hold of, on an engine of its own."""
    with quadriga.Engine("cpu:2") as engine:
        data = engine.data(np.ones(3))
        nothing = quadriga.codelet(access=["update"])(lambda x: None)
        future = engine.submit(nothing, data.update())
        yield from (engine, data, data.read(), nothing, future, data.on_host())
        yield from (engine.counters(), *engine.counters().devices, engine.machine)
        yield from engine.machine.devices
        yield from (quadriga.Cost.of_seconds(1), quadriga.CudaSource("text", "kernel"))
        yield from (quadriga.PerStream(int), quadriga.Pipeline(engine=engine))
        yield from (quadriga.TaskGraph(1), linalg.cho_factor(np.eye(3), engine=engine))
        yield from (linalg.rbf(np.zeros(3)), linalg.from_function(3, lambda i, j: i == j))
        yield quadriga.NotPositiveDefinite("text")


def test_completion_of_objects_shows_documented_names_only():
    seen = set()
    for each in objects():
        kind = type(each)
        bases = [base for base in (tuple, BaseException) if isinstance(each, base)]
        names = {name for name in dir(each) if not name.startswith("_")}
        names -= {name for base in bases for name in dir(base)}
        documented = " ".join(base.__doc__ or "" for base in kind.__mro__)
        names -= set(re.findall(r"\w+", documented)) | listed(REFERENCE)
        assert names == set(), kind
        assert INTERNAL.isdisjoint(dir(each)), kind
        seen.add(kind.__name__)
    assert len(seen) > 15


def test_a_name_that_is_not_listed_is_found():
    assert {"solve", "unheard_of"} - listed("| `solve(a, b)` | unheard_of |") == {"unheard_of"}


@pytest.mark.parametrize(
    "code",
    [
        "import quadriga; quadriga.report.load",
        "import quadriga; quadriga.errors.Error; quadriga.linalg.solve",
        "from quadriga import *; Engine; report.load",
    ],
)
def test_in_a_new_process(code):
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)


def test_reports_are_imported_when_they_are_needed():
    code = "import sys, quadriga; dir(quadriga); print('jinja2' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_the_command_line_as_a_module():
    ran = subprocess.run(
        [sys.executable, "-m", "quadriga", "--version"], capture_output=True, text=True, timeout=240
    )
    assert (ran.returncode, ran.stdout) == (0, f"quadriga {quadriga.__version__}\n")
    ran = subprocess.run(
        [sys.executable, "-m", "quadriga", "nonsense"], capture_output=True, text=True, timeout=240
    )
    assert ran.returncode == 2
