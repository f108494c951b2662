# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_python_manners.py: data, codelets and factors behave as Python's own do.
import concurrent.futures
import copy
import inspect
import multiprocessing
import pickle

import numpy as np
import pytest
from codelets_of_tests import documented, increment

import quadriga
from quadriga import linalg


class TestData:
    @pytest.mark.parametrize("kind", ["f4", "c16", "i2", "?"])
    def test_types(self, kind, engine):
        assert engine.data(np.zeros(3, kind)).dtype == np.dtype(kind)
        assert engine.temporary(3, kind).dtype == np.dtype(kind)

    def test_as_an_array_it_is_current(self, engine):
        array = np.zeros((3, 4))
        data = engine.data(array)
        engine.submit(increment, data.update())
        assert np.asarray(data) is array
        assert array.tolist() == np.ones((3, 4)).tolist()
        assert np.array(data) is not array
        assert np.asarray(data, dtype="f4").dtype == np.float32
        assert np.sum(data) == 12

    def test_the_content_of_a_temporary(self, engine):
        data = engine.temporary((2, 3), "f4")
        fill = quadriga.codelet(access=["write"])(lambda x: x.fill(7))
        engine.submit(fill, data.write())
        content = np.asarray(data)
        assert content.tolist() == [[7] * 3] * 2
        assert content.dtype == np.float32
        content[...] = 0
        assert np.asarray(data, dtype=float).tolist() == [[7] * 3] * 2

    def test_what_its_tasks_failed_with(self, engine):
        data = engine.data(np.zeros(1))
        fail = quadriga.codelet(access=["update"])(lambda x: 1 / 0)
        engine.submit(fail, data.update())
        with pytest.raises(ZeroDivisionError):
            np.asarray(data)


class TestMachines:
    def test_they_are_pickled_and_copied(self):
        machine = quadriga.Machine.parse("emulated:2,memory=1MiB")
        for again in (pickle.loads(pickle.dumps(machine)), copy.deepcopy(machine)):
            assert again.to_json() == machine.to_json()


class TestCodelets:
    @pytest.mark.parametrize("option", ["host_only", "submits"])
    def test_flags_that_are_none_are_refused(self, option):
        with pytest.raises(quadriga.InvalidType, match=f"{option} is 'no'; expected True or False"):
            quadriga.codelet(access=["read"], **{option: "no"})(np.sum)

    def test_they_are_called_as_the_function(self):
        x = np.zeros(2)
        increment(x)
        assert x.tolist() == [1, 1]
        assert documented(x, by=2) == 4
        only_cuda = quadriga.Codelet(
            None, ["update"], cuda=quadriga.CudaSource("text", "kernel"), name="there"
        )
        with pytest.raises(quadriga.InvalidArgument, match="'there' has no body.*CUDA"):
            only_cuda(x)

    def test_they_are_documented_as_the_function(self):
        assert inspect.getdoc(documented) == "The sum, so many times."
        assert list(inspect.signature(documented).parameters) == ["x", "by"]
        assert documented.__module__ == "codelets_of_tests"
        assert documented.__name__ == "documented"

    def test_they_pickle_by_name(self):
        assert pickle.loads(pickle.dumps(documented)) is documented
        assert copy.deepcopy(documented) is documented

    def test_they_pickle_by_what_they_are(self):
        made = quadriga.Codelet(
            np.sum, ["read"], name="total", host_only=False, cost=quadriga.Cost("dgemm", 1, 2)
        )
        again = pickle.loads(pickle.dumps(made))
        assert again is not made
        assert (again.name, again.access, again.cpu) == ("total", ("read",), np.sum)
        with quadriga.Engine("emulated:1,memory=1MiB") as engine:
            assert engine.submit(again, engine.data(np.ones(3)).read()).result() == 3

    def test_sources_pickle(self):
        source = quadriga.CudaSource("text", "kernel", parameters={"alpha": "f8"}, block=32)
        made = quadriga.Codelet(None, ["update"], cuda=source)
        again = pickle.loads(pickle.dumps(made))
        assert (again.name, again.cuda.text) == ("kernel", "text")

    def test_without_parentheses_they_are_refused_at_once(self):
        with pytest.raises(quadriga.InvalidType, match=r"@codelet\(access=\[.*\]\)"):

            @quadriga.codelet
            def forgotten(x):
                pass


def solve_elsewhere(factor, b):
    return factor.solve(b), repr(factor)


class TestFactors:
    @pytest.mark.parametrize("lower", [True, False])
    @pytest.mark.parametrize("kind", ["f4", "c16"])
    def test_they_pickle(self, kind, lower, engine):
        a = np.diag(np.arange(1, 8)).astype(kind)
        factor = linalg.cho_factor(a, lower, tile=3, engine=engine)
        again = pickle.loads(pickle.dumps(factor))
        assert (again.shape, again.dtype, again.lower) == (factor.shape, a.dtype, lower)
        np.testing.assert_array_equal(again.unpack(clean=True), factor.unpack(clean=True))

    def test_another_process_solves(self):
        factor = linalg.cho_factor(4 * np.eye(5), devices="cpu:1")
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
            x, told = pool.submit(solve_elsewhere, factor, np.ones(5)).result(240)
        assert x.tolist() == [0.25] * 5
        assert told == repr(factor)

    def test_they_tell_of_themselves_after_their_engine(self, engine):
        factor = linalg.cho_factor(4 * np.eye(5), engine=engine)
        told = repr(factor)
        engine.close()
        assert repr(factor) == told
        assert "order 5" in factor._repr_html_()
        assert factor.solve(np.ones(5)).tolist() == [0.25] * 5
