# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_pipeline_pending.py: runs of pipelines follow tasks that access their chunks.
"""A writer waits for a moment for readers who come too early; nobody has to come."""

import contextlib
import json
import threading

import numpy as np
import pytest

import quadriga

A_MOMENT = 0.3  # that a task gives a run which doesn't wait for it; one that waits needs none
TIMED = {
    "name": "timed",
    "devices": [{"name": "g0", "kind": "gpu", "memory": 1 << 20}, {"name": "c", "kind": "cpu"}],
    "links": {"up": {"bandwidth": 1e9}, "down": {"bandwidth": 5e8}},
    "routes": [
        {"from": "host", "to": "g0", "links": ["up"]},
        {"from": "g0", "to": "host", "links": ["down"]},
    ],
}
ENGINES = {
    "cpu": {"devices": "cpu:2"},
    "core": {"devices": "cpu:1"},
    "emulated": {"devices": "emulated:2,memory=1MiB"},
    "virtual": {
        "devices": quadriga.Machine.from_json(json.dumps(TIMED)),
        "virtual_clock": True,
    },
}
COST = quadriga.Cost.of_seconds(1e-3)


@pytest.fixture(params=ENGINES)
def engine(request):
    with quadriga.Engine(**ENGINES[request.param]) as made:
        yield made


class Race:
    """A task that another thread's read would overtake, if nothing kept it from doing so."""

    def __init__(self):
        self.has_come = threading.Event()
        self.increase = quadriga.codelet(access=["update"], host_only=False, cost=COST)(
            self._increase
        )
        self.look = quadriga.codelet(access=["read"], host_only=False, cost=COST)(self._look)

    def _increase(self, x):
        self.has_come.wait(A_MOMENT)
        x += 1

    def _look(self, x):
        self.has_come.wait(A_MOMENT)
        return float(x.sum())

    def copy(self, x, y):
        """A kernel."""
        self.has_come.set()
        y[:] = x

    def overwrite(self, x):
        """Another one."""
        self.has_come.set()
        x[:] = 7


def like_x(chunk):
    return chunk["x"].shape, chunk["x"].dtype


def by_rows(pipeline, a):
    return pipeline.source({"x": a}, rows=50)


def from_a_list(pipeline, a):
    return pipeline.source([{"x": a[:50]}, {"x": a[50:]}])


def from_a_generator(pipeline, a):
    return pipeline.source({"x": a[i : i + 50]} for i in (0, 50))


SOURCES = [by_rows, from_a_list, from_a_generator]


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_reads_what_pending_tasks_write(engine, source):
    race, a = Race(), np.zeros((100, 2))
    engine.submit(race.increase, engine.data(a).update())
    pipeline = source(quadriga.Pipeline(engine=engine), a)
    pipeline.kernel(race.copy, reads=["x"], writes={"y": like_x}, cost=COST)
    assert [chunk["y"].tolist() for chunk in pipeline.results()] == [np.ones((50, 2)).tolist()] * 2


@pytest.mark.parametrize("source", SOURCES)
def test_functions_on_the_host_do(engine, source):
    race, a, found = Race(), np.zeros((100, 2)), []
    engine.submit(race.increase, engine.data(a).update())

    def look(chunk):
        race.has_come.set()
        found.append(chunk["x"].min())

    source(quadriga.Pipeline(engine=engine), a).map(look).run()
    assert found == [1, 1]


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_writes_after_pending_tasks_have_read(engine, source):
    race, a = Race(), np.ones((100, 2))
    data = engine.data(a)
    total = engine.submit(race.look, data.read())
    pipeline = source(quadriga.Pipeline(engine=engine), a)
    pipeline.kernel(race.overwrite, updates=["x"], cost=COST)
    pipeline.run()
    assert total.result() == 200
    later = engine.submit(race.look, data.read())  # no device still has what was there before
    assert later.result() == 1400 and (a == 7).all()


def test_functions_on_the_host_write_after_them(engine):
    race, a = Race(), np.ones((100, 2))
    data = engine.data(a)
    total = engine.submit(race.look, data.read())
    by_rows(quadriga.Pipeline(engine=engine), a).map(lambda c: race.overwrite(c["x"])).run()
    assert total.result() == 200
    assert engine.submit(race.look, data.read()).result() == 1400


def test_constants_of_kernels_do(engine):
    race, a = Race(), np.zeros((2, 2))
    engine.submit(race.increase, engine.data(a).update())

    def kernel(x, c, y):
        race.has_come.set()
        y[:] = x + c.sum()

    pipeline = quadriga.Pipeline(engine=engine).source([{"x": np.zeros(3)}])
    pipeline.kernel(kernel, reads=["x"], constants={"c": a}, writes={"y": like_x}, cost=COST)
    assert [chunk["y"].tolist() for chunk in pipeline.results()] == [[4.0] * 3]


@pytest.mark.parametrize("source", SOURCES)
def test_another_engine_s_tasks(source):
    race, a = Race(), np.zeros((100, 2))
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        engine.submit(race.increase, engine.data(a).update())
        pipeline = source(quadriga.Pipeline(devices="cpu:2"), a)
        pipeline.kernel(race.copy, reads=["x"], writes={"y": like_x}, cost=COST)
        assert all((chunk["y"] == 1).all() for chunk in pipeline.results())


def test_a_source_submits_to_another_engine_what_it_yields(engine):
    race = Race()

    def chunks():
        for _ in range(3):
            a = np.zeros(8)
            engine.submit(race.increase, engine.data(a).update())
            yield {"x": a}

    pipeline = quadriga.Pipeline(devices="cpu:1").source(chunks())
    pipeline.kernel(race.copy, reads=["x"], writes={"y": like_x})
    assert [chunk["y"][0] for chunk in pipeline.results()] == [1, 1, 1]


@pytest.mark.parametrize("source", SOURCES)
def test_within_on_host_a_run_waits_for_nobody(engine, source):
    a = np.zeros((100, 2))
    with engine.data(a).on_host("rw") as array:
        array += 1
        pipeline = source(quadriga.Pipeline(engine=engine), array)
        pipeline.kernel(Race().copy, reads=["x"], writes={"y": like_x}, cost=COST)
        assert all((chunk["y"] == 1).all() for chunk in pipeline.results())


@pytest.mark.parametrize("source", SOURCES)
def test_a_body_runs_a_pipeline_on_its_operand(source):
    found = []

    @quadriga.codelet(access=["update"])
    def body(x):
        x += 1
        pipeline = source(quadriga.Pipeline(devices="cpu:1"), x)
        pipeline.kernel(Race().copy, reads=["x"], writes={"y": like_x}, cost=COST)
        found.extend(chunk["y"].min() for chunk in pipeline.results())

    with quadriga.Engine("cpu:2") as engine:
        engine.submit(body, engine.data(np.zeros((100, 2))).update())
    assert found == [1, 1]


def test_a_thread_that_a_body_waits_for_runs_one_from_a_generator():
    found = []

    @quadriga.codelet(access=["update"])
    def body(x):
        def work():
            x[...] += 1
            pipeline = from_a_generator(quadriga.Pipeline(devices="cpu:1"), x)
            pipeline.kernel(Race().copy, reads=["x"], writes={"y": like_x}, cost=COST)
            found.extend(chunk["y"].min() for chunk in pipeline.results())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    with quadriga.Engine("cpu:2") as engine:
        engine.submit(body, engine.data(np.zeros((100, 2))).update())
    assert found == [1, 1]


@pytest.mark.parametrize("source", SOURCES)
def test_a_run_raises_what_the_writer_raised(engine, source):
    @quadriga.codelet(access=["update"], cost=COST)
    def broken(x):
        raise KeyError("no such line")

    a = np.zeros((100, 2))
    engine.submit(broken, engine.data(a).update())
    pipeline = source(quadriga.Pipeline(engine=engine), a)
    pipeline.kernel(Race().copy, reads=["x"], writes={"y": like_x}, cost=COST)
    with pytest.raises(KeyError, match="no such line"):
        pipeline.run()


def test_an_access_that_begins_in_the_loop_over_results():
    """Whoever asks for the next result in it waits for what the run waits for, which is his own."""

    @quadriga.codelet(access=["update"], host_only=False)
    def increase(x):
        x += 1

    for devices in ("cpu:2", "emulated:2,memory=1MiB"):
        with quadriga.Engine(devices) as engine:
            for _ in range(10):
                a, found = np.zeros((10, 2)), 0
                data = engine.data(a)
                chunks = ({"x": a[i : i + 1]} for i in range(10))
                pipeline = quadriga.Pipeline(engine=engine, look_ahead=1).source(chunks)
                with contextlib.ExitStack() as access:
                    for _ in pipeline.map(lambda chunk: None).results():
                        found += 1
                        access.close()
                        for _ in range(20):
                            engine.submit(increase, data.update())
                        access.enter_context(data.on_host("rw"))
                assert found == 10 and (a == 200).all()
