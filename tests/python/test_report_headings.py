# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_headings.py: a report's headings and labels say what is drawn, and units.
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import report_traces as traces

import quadriga
from quadriga import linalg, report

# What the field's readers don't know, or what names the package's own parts.
INTERNAL = re.compile(
    r"\b(acquire|reserve|lookahead|arena|directory|in vain|ways?|home|tile \d+|\w+_\w+|"
    r"[A-Z][a-z]+[A-Z]\w*)\b"
)
UNIT = re.compile(r"\d ?(s|ms|µs|ns|%|B|KiB|MiB|GiB|B/s|kB/s|MB/s|GB/s)$")


class Page(HTMLParser):
    """The headings of each section, what tables' columns are called, and labels of axes."""

    def __init__(self, html):
        super().__init__()
        self.sections, self.headings, self.columns = [], [], []
        self.ticks, self.plots, self.tops = [], 0, []
        self._into = None
        self.feed(
            re.sub(r"<svg.*?</svg>|<style>.*?</style>|<script>.*?</script>", "", html, flags=re.S)
        )

    def handle_starttag(self, tag, attributes):
        kind = dict(attributes).get("class") or ""
        self.plots += kind == "plot"
        if tag == "section" and "card" in kind:
            self.sections.append([])
        if tag == "table":
            self.columns.append([])
        if tag in ("h1", "h2", "h3"):
            self._into = self.headings
            if tag == "h2" and self.sections:
                self.sections[-1].append("")
        elif tag == "th" and self.columns:
            self._into = self.columns[-1]
        elif tag == "span" and kind.startswith("tick-name"):
            self._into = self.ticks
        elif tag == "span" and kind == "top":
            self._into = self.tops
        else:
            self._into = None
            return
        self._into.append("")

    def handle_endtag(self, tag):
        self._into = None

    def handle_data(self, data):
        if self._into is not None:
            self._into[-1] += data


def faults(html):
    """What a reader can't make out."""
    page = Page(html)
    found = [f"a section has {len(each)} headings" for each in page.sections if len(each) != 1]
    names = page.headings
    found += [f"{each!r} heads two parts" for each in set(names) if names.count(each) > 1]
    for columns in page.columns:
        texts = [each.strip() for each in columns if each.strip()]
        found += [f"column {each!r} twice" for each in set(texts) if texts.count(each) > 2]
        names = names + texts
    found += [f"{each!r} is an internal word" for each in names if INTERNAL.search(each)]
    found += [f"{each!r} has no unit" for each in page.ticks + page.tops if not UNIT.search(each)]
    if page.plots != len(page.tops):
        found.append(f"{page.plots} plots, {len(page.tops)} with the value of their height")
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A small factorization, a stream and two runs of devices that wait."""
    folder = tmp_path_factory.mktemp("pages")
    a = np.eye(200) + 0.01
    with quadriga.Engine("emulated:2,memory=1MiB", trace=folder / "cholesky.json") as engine:
        linalg.cholesky(a, engine=engine, tile=50)
    with quadriga.Engine("emulated:2,memory=1MiB", trace=folder / "stream.json") as engine:
        for _ in range(2):
            pipeline = quadriga.Pipeline(engine=engine)
            pipeline.source({"x": np.full(n, 1.0)} for n in (300, 100, 200))
            pipeline.kernel(double, reads=["x"], writes={"y": lambda c: (c["x"].shape, "f8")})
            pipeline.map(lambda chunk: None, name="check")
            pipeline.run()
    traces.write(folder / "made.json", traces.run(traces.cholesky_tasks(9), devices=2))
    names = ("cholesky", "stream", "made")
    return {name: report.to_html(report.load(folder / f"{name}.json")) for name in names}


def double(x, y):
    y[:] = 2 * x


@pytest.mark.parametrize("name", ["cholesky", "stream", "made"])
def test_headings_and_labels_are_plain(pages, name):
    assert faults(pages[name]) == []


def test_each_part_of_a_page_is_headed(pages):
    headings = Page(pages["cholesky"]).headings
    assert headings[1:] == [
        "Run time and its lower bounds",
        "How each device spent its time",
        "Timeline of kernels and copies",
        "Start and end of each device’s work",
        "Utilization of each device over time",
        "Transfer rates over time",
        "Bytes copied between memories",
        "Bytes copied by reason",
        "Longest idle times of devices",
        "Time by kernel",
        "Counters of each device",
    ]
    streams = Page(pages["stream"]).headings
    assert "Stages of pipeline 1" in streams and "Stages of pipeline 2" in streams


def test_the_calls_stand_above_the_timeline(pages):
    page = pages["cholesky"]
    timeline = page[page.index("Timeline of kernels and copies</h2>") :]
    assert 0 < timeline.index("<b>calls</b>") < timeline.index("<b>emulated0</b>")
    assert ">cholesky</span>" in timeline


def test_times_on_all_axes_say_their_unit(pages):
    for page in pages.values():
        ends = re.findall(r'<div class="scale"><span>0 s</span><span>(.*?)</span></div>', page)
        assert len(ends) == Page(page).plots > 0
        assert all(UNIT.search(each) for each in ends)
        assert "the time since the start of the run" in page


def test_reasons_of_copies_are_explained(pages):
    for reason in re.findall(r'</i>([a-z-]+)</td><td class="text free">(.*?)</td>', pages["made"]):
        assert len(reason[1]) > 10
    assert "operands that a task waits for" in pages["made"]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("<h2>Time by kernel</h2>", ""),
        ("<h2>Time by kernel</h2>", "<h2>Counters of each device</h2>"),
        ("<h2>Time by kernel</h2>", "<h2>Lookahead of tile 7</h2>"),
        ("<th>prefetches</th>", "<th>most_bytes</th>"),
        ('<span class="top">100 %</span>', ""),
        ('<span class="top">100 %</span>', '<span class="top">100</span>'),
    ],
)
def test_what_a_stranger_cant_read_is_found(pages, good, bad):
    assert good in pages["cholesky"]
    assert faults(pages["cholesky"].replace(good, bad)) != []
