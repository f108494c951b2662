# SPDX-License-Identifier: BSD-3-Clause
# tests/python/documents_test.py: what the documents show: code runs, links lead somewhere.
import json
import re
import subprocess
from pathlib import Path

import click
import pytest
from scripts import run_script

from quadriga.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
# Pages whose blocks need what only their readers have.
NOT_RUN = {"report.md": "shows a user's own trace"}


def named(pages):
    return pytest.mark.parametrize("page", pages, ids=lambda page: page.name)


def anchors(page):
    """The anchors of a page's headings, as they are made from their text."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {"#" + heading.strip().replace(" ", "-") for heading in plain}


@named([p for p in PAGES if CODE.search(p.read_text()) and p.name not in NOT_RUN])
def test_python_on_the_page_runs(page, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(CODE.findall(page.read_text())))
    run_script(script, tmp_path)


@named(PAGES)
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(page.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(there), f"{page.name} links to {target}{anchor}"


def is_known(commit):
    """Whether the history has it; what has no long history, as a shallow clone, can't tell."""
    git = ["git", "-C", str(ROOT)]
    counted = subprocess.run(
        [*git, "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=False
    )
    if counted.returncode != 0 or int(counted.stdout) < 500:
        return True
    named = [*git, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
    return subprocess.run(named, capture_output=True, check=False).returncode == 0


def test_figures_on_the_front_page_are_rows_of_one_commit():
    page = (ROOT / "README.md").read_text()
    commit, path = re.search(
        r"commit (\w+), [\d-]+, \[rows\]\((bench/results/[\w.-]+)\)", page
    ).groups()
    rows = [json.loads(line) for line in (ROOT / path).read_text().splitlines()]
    rows = [row for row in rows if row["commit"] == commit]
    assert is_known(commit), f"{commit}, which the front page names, isn't in the repository"
    table = re.findall(
        r"^\| (Cholesky|product), order (\d+) \|([^|]+)\|([^|]+)\|([^|]+)\|", page, re.M
    )
    assert len(table) >= 3
    for what, order, *shown in table:
        case = {"Cholesky": "potrf", "product": "gemm"}[what]
        for gpus, figure in zip((1, 2, 4), shown, strict=True):
            setting = {"case": case, "gpus": gpus, "n": int(order), "tile": 0, "pinned": "on"}
            measured = [row["tflops"] for row in rows if setting.items() <= row.items()]
            known = {f"{each:.1f}" for each in measured} or {"not measured"}
            assert figure.strip() in known, f"{what} {order} on {gpus}"


def test_figures_of_gpus_are_rows_of_the_commits_named():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    files = (ROOT / "bench" / "results").glob("*-h200.jsonl")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    table = re.findall(
        r"^\| (Cholesky|product), order (\d+) \|([^|]+)\|([^|]+)\|([^|]+)\|", page, re.M
    )
    assert len(table) >= 7
    for what, order, *cells in table:
        case = {"Cholesky": "potrf", "product": "gemm"}[what]
        for gpus, cell in zip((1, 2, 4), cells, strict=True):
            setting = {"case": case, "gpus": gpus, "n": int(order), "tile": 0, "pinned": "on"}
            for figure, commit in re.findall(r"([\d.]+) \((\w+)", cell):
                wanted = setting | {"commit": commit}
                measured = [row["tflops"] for row in rows if wanted.items() <= row.items()]
                assert figure in {f"{each:.1f}" for each in measured}, f"{what} {order} on {gpus}"


def test_what_deciding_costs_is_as_measured():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    shown, commit, path = re.search(
        r"`decide-8` alone: ([\d., and]+) µs.*?commit (\w+), \[rows\]\(../([\w/.-]+)\)",
        page,
        re.DOTALL,
    ).groups()
    rows = [json.loads(line) for line in (ROOT / path).read_text().splitlines()]
    measured = {row["case"]: row["value"] for row in rows if row["commit"] == commit}
    figures = [f"{measured[f'decide-{devices}'] / 1000:.1f}" for devices in (1, 4, 8)]
    assert re.findall(r"[\d.]+", shown) == figures


@named([p for p in PAGES if SHELL.search(p.read_text())])
def test_commands_on_the_page_have_these_options(page):
    for line in "\n".join(SHELL.findall(page.read_text())).splitlines():
        words = line.split("#")[0].split()
        if not words or words[0].rsplit("/")[-1] != "quadriga":
            continue
        command, path = cli, words[1:]
        while isinstance(command, click.Group) and path and not path[0].startswith("-"):
            found = command.get_command(click.Context(command), path.pop(0))
            assert found is not None, line
            command = found
        known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        used = {word.split("=")[0] for word in path if re.match(r"--?[a-z]", word)}
        assert used <= known, f"{line}: {used - known}"


def test_the_journey_of_a_tile_passes_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \|", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    assert 0 < len(rows) <= 15
    drawn = dict(re.findall(r'\["(\d+) ([\w./]+)"\]', text.split("```")[1]))
    for number, path in rows:
        assert (ROOT / path).is_file(), path
        assert path.endswith(drawn[number]), f"{number} is drawn as {drawn[number]}"
    for path in re.findall(r"`((?:src|python|include)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_contributing_lists_the_rooms_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = re.findall(r"^ +src/(\w+) ", text, re.MULTILINE)
    assert sorted(listed) == sorted(each.name for each in (ROOT / "src").iterdir() if each.is_dir())
