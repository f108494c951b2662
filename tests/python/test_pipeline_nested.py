# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_nested.py: pipelines whose stages, or sources, are pipelines.
"""None waits for itself: what can't run is refused."""

import numpy as np
import pytest

import quadriga

COUNT = 8
SUMS = [float(8 * n) for n in range(COUNT)]


def fulls():
    return (np.full(8, float(n)) for n in range(COUNT))


def nested(engine, inner):
    def body(chunk):
        parts = quadriga.Pipeline(**inner).source(np.split(chunk["array"], 4))
        parts.map(lambda part: {"sum": part["array"].sum(keepdims=True)})
        return {"sum": np.array([sum(part["sum"][0] for part in parts.results())])}

    outer = quadriga.Pipeline(engine=engine).source(fulls()).map(body)
    return [float(chunk["sum"][0]) for chunk in outer.results()]


def test_a_stage_cannot_wait_for_the_cores_that_stages_hold():
    with quadriga.Engine("cpu:2") as engine:
        with pytest.raises(quadriga.InvalidArgument, match="engine of its own.*or flat_map"):
            nested(engine, {"engine": engine})
        assert nested(engine, {"devices": "cpu:1"}) == SUMS, "the engine stays usable"


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2", "emulated:2,memory=1MiB"])
def test_a_source_may_be_a_pipeline_on_the_same_engine(devices):
    with quadriga.Engine(devices) as engine:
        first = quadriga.Pipeline(engine=engine).source(fulls())
        first.map(lambda chunk: {"y": chunk["array"] + 1})
        second = quadriga.Pipeline(engine=engine).source(first.results())
        second.map(lambda chunk: {"z": 2 * chunk["y"]})
        assert [chunk["z"][0] for chunk in second.results()] == [2 * (n + 1) for n in range(COUNT)]


DEVICES = ["cpu:2", "emulated:2,memory=1MiB"]


def total(engine, by_kernel):
    """Of a pipeline on such an engine."""
    pipeline = quadriga.Pipeline(engine=engine).source([np.ones(8)] * 4)
    if by_kernel:
        pipeline.kernel(lambda array: array + 1, reads=["array"], returns="y")
    else:
        pipeline.map(lambda chunk: {"y": chunk["array"] + 1})
    return sum(chunk["y"][0] for chunk in pipeline.results())


@pytest.mark.parametrize("by_kernel", [False, True])
@pytest.mark.parametrize("devices", DEVICES)
def test_a_kernel_cannot_wait_for_its_engine(devices, by_kernel):
    with quadriga.Engine(devices) as engine:
        outer = quadriga.Pipeline(engine=engine).source(fulls())
        outer.kernel(lambda array: array + total(engine, by_kernel), returns="y", name="outer")
        with pytest.raises(quadriga.InvalidArgument, match="engine of its own") as caught:
            outer.run()
        assert "stage 'outer' at chunk 0" in caught.value.__notes__[-1]
        assert total(engine, by_kernel) == 8, "the engine stays usable"


@pytest.mark.parametrize("devices", DEVICES)
def test_a_task_cannot_wait_for_its_engine(devices):
    @quadriga.codelet(["update"], host_only=False, submits=devices == "cpu:2")
    def waiting(x):
        x += total(engine, by_kernel=True)

    with quadriga.Engine(devices) as engine:
        arrays = [np.zeros(8) for _ in range(8)]
        with pytest.raises(quadriga.InvalidArgument, match="engine of its own"):
            for each in arrays:
                engine.submit(waiting, engine.data(each).update())
            engine.wait()


@pytest.mark.parametrize("by_kernel", [False, True])
def test_another_engine_is_no_way_back_to_the_first(by_kernel):
    with quadriga.Engine("cpu:2") as engine, quadriga.Engine("cpu:1") as other:

        def between(chunk):
            middle = quadriga.Pipeline(engine=other).source([np.ones(8)] * 2)
            if by_kernel:
                middle.kernel(lambda array: array + total(engine, False), returns="y")
            else:
                middle.map(lambda chunk: {"y": np.array([total(engine, False)])})
            return {"sum": np.array([chunk["y"][0] for chunk in middle.results()])}

        outer = quadriga.Pipeline(engine=engine).source(fulls()).map(between)
        with pytest.raises(quadriga.InvalidArgument, match="or a body that waits for it"):
            outer.run()


def test_more_bodies_may_wait_than_there_are_threads_for_them():
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        outer = quadriga.Pipeline(engine=engine, threads=100, look_ahead=200)
        outer.source([np.ones(8)] * 100)
        outer.map(lambda chunk: {"sum": np.array([total(engine, False)])})
        assert [chunk["sum"][0] for chunk in outer.results()] == [8] * 100
