# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_parts.py: chunks that become several or none, and lists of stages.
"""Filters, flat_map, and chunks that pass some stages only."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import numpy as np
import pytest

import quadriga
from quadriga.pipeline import Chunk, Through

DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]


def numbered(count: int) -> Iterator[dict[str, np.ndarray]]:
    for number in range(count):
        yield {"x": np.full(number % 7 + 1, float(number))}


def double(x, y):
    y[:] = 2 * x


def like_x(chunk: Chunk) -> tuple[tuple[int, ...], str]:
    return chunk["x"].shape, "f8"


def elements(chunk: Chunk) -> Iterator[dict[str, np.ndarray]]:
    for i in range(len(chunk["x"])):
        yield {"x": chunk["x"][i : i + 1]}


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("in_order", [True, False])
def test_flat_map_makes_several_chunks_of_each(devices: str, in_order: bool) -> None:
    pipeline = quadriga.Pipeline(devices=devices).source(numbered(30)).flat_map(elements)
    pipeline.kernel(double, reads=["x"], writes={"y": like_x})
    seen = []
    for chunk in pipeline.results(in_order=in_order):
        assert chunk["y"][0] == 2 * chunk.number
        seen.append((chunk.number, *chunk.parts))
    expected = [(n, i) for n in range(30) for i in range(n % 7 + 1)]
    assert (seen if in_order else sorted(seen)) == expected
    stats = pipeline.stats()
    assert stats.stages[1].kind == "flat_map"
    assert stats.chunks == stats.stages[1].chunks == len(expected)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("parts", [0, 1, 3])
def test_the_bound_counts_what_flat_map_takes_however_few_it_makes(
    devices: str, parts: int
) -> None:
    def look(chunk: Chunk) -> list[dict[str, np.ndarray]]:
        time.sleep(0.02)  # a function's work is done when it returns its list
        return [{"x": chunk["x"]}] * parts

    pipeline = quadriga.Pipeline(devices=devices).source(numbered(10)).flat_map(look)
    stats = pipeline.run()
    assert (stats.chunks, stats.ended) == (10 * parts, 10)
    assert stats.stages[1].busy_seconds >= 0.2
    assert stats.bound_seconds >= 0.2
    assert f"{stats.limit} limits: at least" in str(stats)


def test_the_bound_counts_what_flat_map_takes_when_it_fails() -> None:
    def look(chunk: Chunk) -> Iterator[dict[str, np.ndarray]]:
        time.sleep(0.02)
        raise ValueError("unreadable")
        yield {}

    pipeline = quadriga.Pipeline(devices="cpu:2", on_error="skip").source(numbered(10))
    stats = pipeline.flat_map(look).run()
    assert (stats.failed, stats.ended) == (10, 10)
    assert stats.bound_seconds >= 0.2
    assert f"{stats.limit} limits: at least" in str(stats)


def test_during_a_run_chunks_that_became_none_have_ended() -> None:
    seen = []

    def look(chunk: Chunk) -> list[dict[str, np.ndarray]]:
        seen.append(pipeline.stats())
        return []

    pipeline = quadriga.Pipeline(devices="cpu:1", look_ahead=1)
    pipeline.source(numbered(50)).flat_map(look).run()
    # The source may have given the next one already, but not the one after.
    assert all(stats.ended >= number - 1 for number, stats in enumerate(seen))
    assert all(stats.ended <= number for number, stats in enumerate(seen))


def test_a_part_too_large_for_flat_maps_memory_names_it() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:2").source({"x": np.ones(1000)} for _ in range(2))
    pipeline.flat_map(lambda chunk: [{"x": chunk["x"]}], memory="1KiB", name="cut")
    pipeline.kernel(double, reads=["x"], writes={"y": like_x})
    told = "0.0 needs 16000 bytes .* has 1024 for what 'cut' makes \\(its memory\\)"
    with pytest.raises(quadriga.TooLarge, match=told):
        pipeline.run()


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("mode", ["parallel", "serial", "serial_in_order"])
def test_a_filter_drops_chunks(devices: str, mode: str) -> None:
    pipeline = quadriga.Pipeline(devices=devices).source(numbered(30))
    pipeline.filter(lambda chunk: chunk.number % 3 == 0, mode=mode)
    pipeline.kernel(double, reads=["x"], writes={"y": like_x})
    assert [chunk.number for chunk in pipeline.results()] == list(range(0, 30, 3))
    assert pipeline.stats().dropped == 20
    assert "20 dropped" in str(pipeline.stats())


@pytest.mark.parametrize("devices", DEVICES)
def test_a_chunk_may_pass_some_stages_only(devices: str) -> None:
    def mixed() -> Iterator[object]:
        for number, chunk in enumerate(numbered(20)):
            yield Through(chunk, ["note"]) if number % 2 else chunk

    noted = []
    pipeline = quadriga.Pipeline(devices=devices).source(mixed())
    pipeline.kernel(double, reads=["x"], writes={"y": like_x})
    pipeline.map(lambda chunk: noted.append(chunk.number), mode="serial", name="note")
    for chunk in pipeline.results():
        assert ("y" in chunk) == (chunk.number % 2 == 0)
    assert sorted(noted) == list(range(20))


def test_a_stage_that_there_isnt_is_named() -> None:
    pipeline = quadriga.Pipeline(devices="cpu:1").source([Through(np.zeros(3), ["triple"])])
    with pytest.raises(quadriga.InvalidArgument, match="'triple'; the pipeline has 'double'"):
        pipeline.kernel(double, reads=["array"], writes={"y": lambda c: (3, "f8")}).run()


@pytest.mark.parametrize("stage", ["flat_map", "kernel", "map"])
def test_a_part_that_fails_is_named_and_those_before_arrive(stage: str) -> None:
    def broken(chunk: Chunk) -> Iterator[dict[str, np.ndarray]]:
        for part, made in enumerate(elements(chunk)):
            if stage == "flat_map" and (chunk.number, part) == (12, 3):
                raise ValueError("no good")
            yield made | {"part": np.array([float(part)])}

    def check(x, part, y) -> None:
        if stage == "kernel" and (x[0], part[0]) == (12, 3):
            raise ValueError("no good")

    def look(chunk: Chunk) -> None:
        if stage == "map" and (chunk.number, *chunk.parts) == (12, 3):
            raise ValueError("no good")

    pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB").source(numbered(30))
    pipeline.flat_map(broken, name="flat_map")
    pipeline.kernel(check, reads=["x", "part"], writes={"y": like_x}, name="kernel")
    pipeline.map(look, name="map")
    seen = []
    with pytest.raises(ValueError, match="no good") as raised:
        for chunk in pipeline.results():
            seen.append((chunk.number, *chunk.parts))
    assert raised.value.__notes__ == [f"in stage '{stage}' at chunk 12.3"]
    assert seen == [(n, i) for n in range(12) for i in range(n % 7 + 1)] + [
        (12, 0),
        (12, 1),
        (12, 2),
    ]
    (failure,) = (each for each in pipeline.failures if each.chunk == 12)
    assert failure.parts == (3,)


def test_a_chunk_may_become_more_than_fits_memory() -> None:
    def many(chunk: Chunk) -> Iterator[np.ndarray]:
        for i in range(300):
            yield np.full(1000, float(i))  # 2.4 MB in all

    pipeline = quadriga.Pipeline(devices="cpu:2", host_memory="256KiB").source([{}, {}])
    pipeline.flat_map(many, memory="100KiB").map(lambda chunk: None)
    expected = [(n, i) for n in range(2) for i in range(300)]
    assert [(c.number, *c.parts) for c in pipeline.results()] == expected
    assert 50_000 < pipeline.stats().most_host_bytes <= 102_400


def test_many_tiny_parts_leave_memory_flat() -> None:
    def run(count: int) -> int:
        pipeline = quadriga.Pipeline(devices="cpu:1").source([{}] * 10)
        pipeline.flat_map(lambda chunk: ({"value": i} for i in range(count)))
        pipeline.filter(lambda chunk: chunk["value"] % 2 == 0)
        return pipeline.run().chunks

    assert run(300) == 1_500
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run(4_000) == 20_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000  # KiB


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.flat_map(3), "flat_map takes a function of a chunk"),
        (lambda p: p.flat_map(list, memory="0"), "memory is '0'"),
        (lambda p: p.filter(len, mode="sorted"), "mode is 'sorted'"),
        (lambda p: Through({}, "name"), "list of names"),
        (lambda p: p.source([{}]).flat_map(list, memory="9TiB").run(), "leave some"),
    ],
)
def test_wrong_arguments_are_named(call, message: str) -> None:
    with pytest.raises(quadriga.Error, match=message):
        call(quadriga.Pipeline(devices="cpu:1"))


def test_an_estimate_asks_what_chunks_become() -> None:
    def rows(chunk: Chunk) -> Iterator[dict[str, object]]:
        for row in chunk["x"]:
            yield {"x": row}

    machine = quadriga.Machine.parse("emulated:1,memory=1GiB,h2d=1GB/s,d2h=1GB/s;cpu:4")
    with quadriga.Engine(machine, virtual_clock=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine).flat_map(rows)
        pipeline.map(lambda chunk: None, name="last").takes("last", 0.01)
        like = [{"x": np.empty((5, 10))} for _ in range(8)]
        estimate = pipeline.estimate(like)
        pipeline.source(like).run()
        stats = pipeline.stats()
    assert stats.chunks == 40
    assert estimate.limit == stats.limit == "the host's cores"
    assert estimate.seconds == pytest.approx(stats.bound_seconds, rel=0.01)
    with pytest.raises(quadriga.Unavailable, match="flat_map 'rows' can't tell .* chunk 0"):
        quadriga.Pipeline(devices="cpu:1").flat_map(rows).estimate([{"y": np.empty(3)}])
