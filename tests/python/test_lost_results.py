# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_lost_results.py: engines that end without all that their tasks wrote.
import warnings

import pytest

import quadriga


class LostContent:
    """An engine's core whose end finds content that can't come home."""

    def __init__(self, core):
        self._core = core

    def __getattr__(self, name):
        return getattr(self._core, name)

    def end(self):
        self._core.end()
        raise quadriga.IoError("the only copy of a 4 x 1 float64 tile was lost")


@pytest.fixture
def losing_engine():
    engine = quadriga.Engine("cpu:1")
    engine._ending._core = LostContent(engine.core)
    return engine


def test_close_raises_what_kept_results_from_coming_home(losing_engine):
    with pytest.raises(quadriga.IoError, match="4 x 1 float64 tile was lost"):
        losing_engine.close()
    assert repr(losing_engine) == "<Engine, closed>"
    losing_engine.close()


def test_a_block_raises_it(losing_engine):
    with pytest.raises(quadriga.IoError, match="tile was lost"), losing_engine:
        pass


def test_a_block_that_another_exception_leaves_warns_of_it(losing_engine):
    with (
        pytest.warns(RuntimeWarning, match="an engine was closed: the only copy"),
        pytest.raises(ZeroDivisionError),
        losing_engine,
    ):
        raise ZeroDivisionError
    assert repr(losing_engine) == "<Engine, closed>"


def test_a_dropped_engine_warns_of_it(losing_engine):
    with pytest.warns(RuntimeWarning, match="an engine was closed: the only copy"):
        losing_engine.__del__()


@pytest.mark.parametrize("same", [True, False])
def test_a_close_that_fails_of_what_is_raised_adds_nothing(same, monkeypatch):
    """As where the system has no more threads: to compute fails of it, and to close does."""
    engine = quadriga.Engine("cpu:1")
    close = engine.close
    words = "can't start a thread"

    def fails():
        close()
        raise quadriga.Unavailable(words)

    monkeypatch.setattr(engine, "close", fails)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with pytest.raises(quadriga.Unavailable), engine:
            raise quadriga.Unavailable(words if same else "no device")
    assert [str(each.message) for each in found] == (
        [] if same else [f"an engine was closed: {words}"]
    )
