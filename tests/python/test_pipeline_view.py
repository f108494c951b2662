# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_view.py: what is shown of a run while it goes on.
"""The live view of streams: what it looks like, where it is shown, how it ends."""

import dataclasses
import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
from paces_of_tests import at_some_pace

import quadriga
from quadriga.pipeline import progress as progress_module
from quadriga.pipeline.progress import Progress
from quadriga.pipeline.stats import PipelineStats, StageStats
from quadriga.pipeline.view import bar, line, screen

SOURCE = StageStats("source", "source", 40, 0.5, 0, 1.5, 8, 0.05, 0, 0, 4, 0.01, 0.02)
WRITE = StageStats("write", "serial", 30, 9, 4.5, 1, 0, 0.9, 3, 0.45, 3, 0.25, 1.5)
STATS = PipelineStats(
    stages=(SOURCE, WRITE),
    chunks=30,
    ended=33,
    failed=1,
    dropped=2,
    missed=0,
    repeated=0,
    seconds=10.0,
    bound_seconds=8.0,
    limit="write",
    latency_median=0.5,
    latency_99=2.0,
    most_host_bytes=1000,
    by_device=(),
    most_on_device=0,
)
# A program that shows a run of so many chunks on a terminal.
PROGRAM = """
import sys, time
import numpy as np, quadriga
pipeline = quadriga.Pipeline(devices="cpu:1", look_ahead=2).source([np.zeros(10)] * {count})
def slow(chunk):
    time.sleep({seconds})
    if chunk.number == 20:
        print("a word of the stage")
pipeline.map(slow, mode="serial", name="slow")
print("began", flush=True)
pipeline.run(progress=True)
print("ended")
"""


def paced(count: int, seconds: float = 0.05) -> quadriga.Pipeline:
    pipeline = quadriga.Pipeline(devices="cpu:1", look_ahead=2).source([np.zeros(10)] * count)
    return pipeline.map(lambda chunk: time.sleep(seconds), mode="serial", name="slow")


def test_a_screen_has_how_far_it_is_the_bound_and_all_of_each_stage() -> None:
    assert screen(STATS, 100).split("\n") == [
        "30 of 100 chunks, 3 a second, 20 s left, write limits, 1 skipped",
        "10 s so far, 25 % over the bound of 8 s; latency 0.5 s, of 99 % at most 2 s",
        "stage        now  a second  chunks  queue  latency  99 %  acquire  process  reserve",
        "source  ▍                4      40      0     0.01  0.02      1.5      0.5        8",
        "write   ███████▎         3      30      3     0.25   1.5        1        9        0",
    ]


def test_now_is_of_the_time_since_the_statistics_before() -> None:
    stages = (
        dataclasses.replace(SOURCE, chunks=36),
        dataclasses.replace(WRITE, chunks=20, occupancy=1.0),
    )
    before = dataclasses.replace(STATS, seconds=8.0, stages=stages)
    rows = screen(STATS, None, before).split("\n")
    assert rows[3].split() == ["source", "▍", "2", "40", "0", "0.01", "0.02", "1.5", "0.5", "8"]
    assert rows[4].split() == ["write", "████", "5", "30", "3", "0.25", "1.5", "1", "9", "0"]
    # At once, as at the end: of the time so far.
    assert screen(STATS, None, STATS) == screen(STATS, None)


@pytest.mark.parametrize(("kind", "results"), [("serial", 4), ("flat_map", 0), ("flat_map", 900)])
def test_the_bound_is_told_once_more_has_ended_than_is_in_progress(kind: str, results: int) -> None:
    """What is in progress has taken nearly all of the time, and the bound knows nothing of it."""
    first = dataclasses.replace(
        STATS, chunks=0, ended=0, failed=0, dropped=0, seconds=0.5, bound_seconds=3e-5,
        limit="source",
        stages=(dataclasses.replace(SOURCE, chunks=8), dataclasses.replace(WRITE, kind=kind)),
    )  # fmt: skip
    rows = screen(first, 100).split("\n")
    assert rows[1] == "0.5 s so far; latency 0.5 s, of 99 % at most 2 s"
    assert "limits" not in rows[0] + str(first)
    then = dataclasses.replace(first, chunks=results, ended=4, bound_seconds=0.25)
    assert screen(then, 100).split("\n")[1].startswith("0.5 s so far, 100 % over the bound of")
    assert "source limits" in line(then, 100)
    assert "source limits: at least 0.25 s" in str(then)


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\nb", "a\rb", "a\x9bb", "a\u202eb", "a\udc80b"])
def test_names_of_stages_do_nothing_to_a_terminal(name: str) -> None:
    stages = (SOURCE, dataclasses.replace(WRITE, name=name))
    stats = dataclasses.replace(STATS, stages=stages, limit=name)
    for text in (screen(stats, 100), line(stats, 100), str(stats)):
        for each in text.split("\n"):
            assert each.isprintable()
    assert len(screen(stats, 100).split("\n")) == 5
    assert screen(stats, 100).count("a\\") == 2  # still seen, and told from others


def test_a_screen_of_an_unknown_bound_and_of_names_longer_than_titles() -> None:
    long = dataclasses.replace(WRITE, name="encode the annotated clip")
    nothing = dataclasses.replace(STATS, bound_seconds=0.0, limit="", stages=(SOURCE, long))
    rows = screen(nothing, None).split("\n")
    assert rows[1].startswith("10 s so far; latency")
    assert len({len(row) for row in rows[2:]}) == 1
    assert line(nothing, None) == "30 chunks, 3 a second, 1 skipped"


@pytest.mark.parametrize(
    ("share", "text"), [(0, ""), (0.5, "██"), (1, "████"), (7.0, "████"), (-1, ""), (1 / 32, "▏")]
)
def test_bars(share: float, text: str) -> None:
    assert bar(share, 4) == text.ljust(4)


def test_without_a_terminal_there_are_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(pace):
        monkeypatch.setattr(progress_module._Lines, "every", 0.2 * pace)
        paced(40, 0.05 * pace).run(progress=True)
        lines = capsys.readouterr().err.splitlines()
        assert 4 <= len(lines) <= 12
        told = r"\d+ of 40 chunks, .* a second, \d+ s left, slow limits"
        assert all(re.match(told, each) for each in lines[1:-1])
        assert lines[-1].startswith("40 of 40 chunks, ")
        assert not any("\x1b" in each or "\r" in each for each in lines)

    at_some_pace(seen, (1, 4, 16))


def test_results_show_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(list(paced(3).results(progress=True))) == 3
    assert capsys.readouterr().err.startswith("3 of 3 chunks, ")


def shown(
    count: int, interrupt_after: float | None = None, seconds: float = 0.05
) -> tuple[str, float, int]:
    """What a terminal gets of PROGRAM, seconds from the interrupt to the end, and the status."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(count=count, seconds=seconds)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
        start_new_session=True,
    )
    os.close(slave)
    told = b""
    interrupted = 0.0
    while True:
        try:
            got = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not got:
            break
        told += got
        if interrupt_after is not None and not interrupted and b"a second" in told:
            time.sleep(interrupt_after)
            interrupted = time.monotonic()
            process.send_signal(signal.SIGINT)
    status = process.wait(timeout=120)
    ended = time.monotonic()
    os.close(master)
    return told.decode(), ended - interrupted, status


def test_a_terminal_shows_a_screen_over_itself_and_what_is_printed_above_it() -> None:
    def seen(pace: int) -> None:
        told, _, status = shown(40, seconds=0.05 * pace)
        assert status == 0
        assert told.count("slow limits") >= 3
        assert "\x1b[1A" in told  # over itself
        assert told.count("a word of the stage") == 1
        assert told.index("\x1b[?25l") < told.rindex("\x1b[?25h")  # the cursor is back
        assert "ended" in told[told.rindex("\x1b[?25h") :]
        assert "40 of 40 chunks" in told

    at_some_pace(seen, (1, 4, 16))


def test_an_interrupt_ends_screen_and_run() -> None:
    told, seconds, status = shown(100_000, interrupt_after=0.3)
    assert status not in (0, None)
    assert "KeyboardInterrupt" in told
    assert seconds < 110  # of which the interpreter's end is most
    assert told.count("\x1b[?25l") == told.count("\x1b[?25h") == 1
    assert told.rindex("\x1b[?25h") < told.index("KeyboardInterrupt")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_of_two_runs_at_once_one_has_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Terminal()
    monkeypatch.setattr(sys, "stderr", there)
    made, all_made = [], threading.Event()

    class Counted(Progress):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            made.append(self)
            if len(made) == 3:
                all_made.set()

    def stay(chunk: quadriga.pipeline.Chunk) -> None:
        assert all_made.wait(240)
        time.sleep(0.05)

    def run() -> None:
        pipeline = quadriga.Pipeline(devices="cpu:1", look_ahead=2).source([np.zeros(10)] * 16)
        pipeline.map(stay, mode="serial").run(progress=True)

    monkeypatch.setattr(progress_module, "Progress", Counted)
    runs = [threading.Thread(target=run) for _ in range(3)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    monkeypatch.undo()
    assert there.getvalue().count("16 of 16 chunks") >= 3
    assert there.getvalue().count("\x1b[?25h") == 1
    assert not progress_module._terminal.locked()


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_stream_that_nobody_reads_ends_the_view_and_not_the_run(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Closed()
    monkeypatch.setattr(there, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", there)
    stats = paced(14).run(progress=True)
    monkeypatch.undo()
    assert stats.chunks == 14
    assert not progress_module._terminal.locked()


def test_without_standard_error_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    stats = paced(2).run(progress=True)
    monkeypatch.undo()
    assert stats.chunks == 2


def test_a_function_gets_the_statistics_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(pace: int) -> None:
        monkeypatch.setattr(progress_module._Function, "every", 0.5 * pace)
        told: list[PipelineStats] = []
        pipeline = paced(24, 0.05 * pace)
        stats = pipeline.run(progress=told.append)
        assert 2 <= len(told) <= 5
        assert [each.chunks for each in told] == sorted(each.chunks for each in told)
        middle = told[-2]
        assert 0 < middle.chunks < 24
        assert middle.stages[1].occupancy > 0.5
        assert middle.limit == "slow"
        assert told[-1] == stats

    at_some_pace(seen, (1, 4, 16))


@pytest.mark.parametrize("error", [KeyError("mine"), quadriga.InvalidArgument("mine")])
@pytest.mark.parametrize("way", ["run", "results"])
def test_what_a_function_raises_ends_the_run(error: Exception, way: str) -> None:
    def told(stats: PipelineStats) -> None:
        raise error

    pipeline = paced(100_000, 0.01)
    with pytest.raises(type(error), match="mine"):
        pipeline.run(progress=told) if way == "run" else list(pipeline.results(progress=told))
    seen = pipeline.stats().chunks
    time.sleep(0.2)
    assert pipeline.stats().chunks == seen


def test_a_stage_that_raises_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(chunk: quadriga.pipeline.Chunk) -> None:
        time.sleep(0.05)
        if chunk.number == 14:
            raise KeyError("it")

    there = Terminal()
    monkeypatch.setattr(sys, "stderr", there)
    pipeline = (
        quadriga.Pipeline(devices="cpu:1").source([np.zeros(1)] * 30).map(fail, mode="serial")
    )
    with pytest.raises(KeyError, match="it"):
        pipeline.run(progress=True)
    monkeypatch.undo()
    assert there.getvalue().count("\x1b[?25h") == 1
    assert "1 skipped" not in there.getvalue().split("\n")[0]


def test_statistics_are_asked_for_twice_a_second_and_take_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0
    pipeline = paced(24)

    def stats() -> PipelineStats:
        nonlocal asked
        asked += 1
        return pipeline.stats()

    pipeline.run()
    clock = 0.0
    with monkeypatch.context() as patch:
        patch.setattr(progress_module, "time", types.SimpleNamespace(monotonic=lambda: clock))
        view = Progress(stats, [], lambda _: None)
        for step in range(120):
            clock = step / 100
            view.tell()
    assert asked == 2

    def take_little(pace: int) -> None:
        count = 50
        begin = time.thread_time()
        for _ in range(count):
            screen(stats(), 24)
        a_call = (time.thread_time() - begin) / count
        assert 2 * a_call < 0.01  # of a second: less than a hundredth of one core

    at_some_pace(take_little, range(20))


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=64MiB"])
def test_snapshots_during_a_run_add_up(devices: str) -> None:
    pipeline = quadriga.Pipeline(devices=devices).source({"x": np.ones(64)} for _ in range(3000))
    pipeline.kernel(
        lambda x, y: np.add(x, 1, out=y),
        reads=["x"],
        name="add",
        writes={"y": lambda chunk: (chunk["x"].shape, "f8")},
    )
    total = 0.0

    def add(chunk: quadriga.pipeline.Chunk) -> None:
        nonlocal total
        total += chunk["y"].sum()

    pipeline.map(add, mode="serial")
    snapshots: list[PipelineStats] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            try:
                snapshots.append(pipeline.stats())
            except quadriga.InvalidArgument:  # it hasn't begun yet
                assert not snapshots

    watcher = threading.Thread(target=watch)
    watcher.start()
    last = pipeline.run()
    done.set()
    watcher.join()
    assert total == 2 * 64 * 3000
    assert len(snapshots) > 10
    for before, after in zip(snapshots, snapshots[1:], strict=False):
        assert before.chunks <= after.chunks
        assert before.seconds <= after.seconds
        for old, new in zip(before.stages, after.stages, strict=True):
            assert old.chunks <= new.chunks
    assert all(0 <= stage.occupancy <= 1.5 for each in snapshots for stage in each.stages)
    assert last.chunks == 3000


def test_an_interrupt_while_what_runs_is_waited_for_leaves_the_terminal_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(pipeline: quadriga.Pipeline) -> None:
        leave(pipeline)
        raise KeyboardInterrupt

    def fail(flow: object) -> None:
        raise KeyError("it")

    leave = quadriga.Pipeline._leave
    monkeypatch.setattr(quadriga.Pipeline, "_leave", interrupted)
    for way in ("run", "results"):
        there = Terminal()
        monkeypatch.setattr(sys, "stderr", there)
        pipeline = paced(100)
        chunks = iter(pipeline.results(progress=True)) if way == "results" else None
        with pytest.raises(KeyboardInterrupt):
            if chunks:
                while "\x1b[?25l" not in there.getvalue():
                    next(chunks)
                chunks.close()
            else:
                monkeypatch.setattr(pipeline, "_has_run", fail)
                pipeline.run(progress=True)
        assert sys.stderr is there
        assert there.getvalue().count("\x1b[?25h") == 1
        assert not progress_module._terminal.locked()


class Bare:
    """Only what print() needs."""

    def __init__(self) -> None:
        self.told = ""

    def write(self, text: str) -> None:
        self.told += text

    def flush(self) -> None: ...


def test_any_stream_in_the_place_of_standard_error_will_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = Bare()
    monkeypatch.setattr(sys, "stderr", bare)
    assert paced(2).run(progress=True).chunks == 2
    assert bare.told.startswith("2 of 2 chunks")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert paced(2).run(progress=True).chunks == 2


@pytest.mark.parametrize("setting", [{"TERM": "dumb"}, {"TTY_COMPATIBLE": "0"}])
def test_a_terminal_that_can_only_add_lines_gets_lines(
    setting: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(progress_module._Lines, "every", 0.2)
    there = Terminal()
    monkeypatch.setattr(sys, "stderr", there)
    paced(20).run(progress=True)
    assert len(there.getvalue().splitlines()) >= 3
    assert "\x1b" not in there.getvalue()
    assert not progress_module._terminal.locked()


class Endless:
    """As loaders of streams: they have a length by their type alone."""

    def __len__(self) -> int:
        raise TypeError("no length")

    def __iter__(self):  # noqa: ANN204
        return iter([np.zeros(1)] * 3)


def test_a_source_whose_length_nobody_knows_is_shown_without(
    capsys: pytest.CaptureFixture[str],
) -> None:
    quadriga.Pipeline(devices="cpu:1").source(Endless()).run(progress=True)
    assert capsys.readouterr().err.startswith("3 chunks")


def test_chunks_that_were_missed_are_in_progress_no_more() -> None:
    source = dataclasses.replace(SOURCE, chunks=100)
    over = dataclasses.replace(STATS, chunks=40, ended=100, missed=60, stages=(source, WRITE))
    assert "write limits" in str(over)
    assert "limits" not in str(dataclasses.replace(over, ended=40))
