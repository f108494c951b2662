# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_counters.py: counters equal the trace, and interval sums the definition.
import copy
from itertools import pairwise

import numpy as np
import pytest
import report_traces as traces
from hypothesis import given, settings
from hypothesis import strategies as st

from quadriga import report
from quadriga.report.analysis import intervals

DOCUMENT = traces.run(traces.cholesky_tasks(7), devices=3, room=9)


def load(tmp_path, document):
    return report.load(traces.write(tmp_path / "trace.json", document))


@settings(max_examples=40, deadline=None)
@given(
    tiles=st.integers(1, 6),
    devices=st.integers(1, 4),
    room=st.integers(4, 30),
    peers=st.booleans(),
    product=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_counters_kept_while_running_equal_the_recount(
    tmp_path_factory, tiles, devices, room, peers, product, seed
):
    tasks = (traces.product_tasks if product else traces.cholesky_tasks)(tiles)
    document = traces.run(tasks, devices=devices, room=room, peers=peers, seed=seed)
    trace = load(tmp_path_factory.mktemp("run"), document)
    assert report.check(trace) == []
    kept, recounted = document["quadriga"]["counters"], report.recount(trace)
    assert sorted(kept["links"], key=str) == sorted(recounted["links"], key=str)


def devices_of(document):
    return document["quadriga"]["counters"]["devices"]


@pytest.mark.parametrize(
    "counter", ["tasks", "hits", "misses", "prefetches", "evictions", "write_backs", "steals"]
)
def test_a_device_counter_that_lies_is_found(tmp_path, counter):
    document = copy.deepcopy(DOCUMENT)
    devices_of(document)[1][counter] = devices_of(document)[1].get(counter, 0) + 1
    (found,) = report.check(load(tmp_path, document))
    assert (found.where, found.counter) == ("emulated1", counter)
    assert found.reported == found.recounted + 1
    assert counter in str(found) and "emulated1" in str(found)


@pytest.mark.parametrize("counter", ["overlap_seconds", "overlap_possible_seconds"])
def test_seconds_that_lie_are_found(tmp_path, counter):
    document = copy.deepcopy(DOCUMENT)
    devices_of(document)[0][counter] += 2e-6
    assert [found.counter for found in report.check(load(tmp_path, document))] == [counter]


@pytest.mark.parametrize("kind", ["compute", "copy_in", "copy_out", "peer_in"])
def test_a_busy_time_that_lies_is_found(tmp_path, kind):
    document = copy.deepcopy(DOCUMENT)
    devices_of(document)[2]["busy_seconds"][kind] += 1e-5
    (found,) = report.check(load(tmp_path, document))
    assert found.counter == f"busy_seconds.{kind}"


@pytest.mark.parametrize("counter", ["bytes", "copies"])
def test_a_link_that_lies_is_found(tmp_path, counter):
    document = copy.deepcopy(DOCUMENT)
    link = document["quadriga"]["counters"]["links"][0]
    link[counter] -= 1
    (found,) = report.check(load(tmp_path, document))
    assert (found.where, found.counter) == (f"{link['from']} to {link['to']}", counter)


def test_a_lost_event_is_found(tmp_path):
    for category in ("kernel", "copy", "hit", "miss", "evict", "write_back"):
        document = copy.deepcopy(DOCUMENT)
        events = document["traceEvents"]
        events.remove(next(event for event in events if event.get("cat") == category))
        assert report.check(load(tmp_path, document)), category


def test_links_and_devices_that_only_one_side_knows_are_found(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    counters = document["quadriga"]["counters"]
    lost = counters["links"].pop()
    counters["links"].append({"from": "moon", "to": "host", "bytes": 5, "copies": 1})
    wheres = {found.where for found in report.check(load(tmp_path, document))}
    assert wheres == {"moon to host", f"{lost['from']} to {lost['to']}"}


def test_a_run_that_ends_before_its_events_is_found(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    document["quadriga"]["seconds"] /= 2
    assert [found.counter for found in report.check(load(tmp_path, document))] == ["seconds"]


def test_bytes_beyond_what_a_float_holds(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    copies = [event for event in document["traceEvents"] if event.get("cat") == "copy"]
    copies[0]["args"]["bytes"] += 2**55 + 1
    way = copies[0]["args"]["from"], copies[0]["args"]["to"]
    for link in document["quadriga"]["counters"]["links"]:
        link["bytes"] += (2**55 + 1) * ((link["from"], link["to"]) == way)
    assert report.check(load(tmp_path, document)) == []


SETS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=12)


def columns(pairs):
    start = np.array([s for s, _ in pairs], np.int64)
    return start, start + np.array([n for _, n in pairs], np.int64)


def points(pairs):
    return {t for s, n in pairs for t in range(s, s + n)}


@given(SETS, SETS)
def test_intervals_against_sets_of_points(one, other):
    ours, theirs = intervals.merge(*columns(one)), intervals.merge(*columns(other))
    assert ours.length == len(points(one))
    assert (ours.start[1:] > ours.end[:-1]).all()
    assert intervals.common_length(ours, theirs) == len(points(one) & points(other))
    gaps = intervals.complement(ours, 100)
    assert points(zip(gaps.start, gaps.end - gaps.start, strict=True)) == set(range(100)) - points(
        one
    )


@given(SETS, st.lists(st.integers(0, 100), min_size=2, max_size=9, unique=True))
def test_coverage_against_counting(pairs, edges):
    edges = np.array(sorted(edges), np.int64)
    found = intervals.coverage(*columns(pairs), edges)
    for bucket, (first, last) in enumerate(pairwise(edges)):
        busy = sum(max(0, min(s + n, last) - max(s, first)) for s, n in pairs)
        assert found[bucket] == busy


@given(SETS)
def test_rates_keep_the_amount(pairs):
    start, end = columns(pairs)
    amount = np.arange(1, len(pairs) + 1) * 1000
    edges = np.arange(0, 120, 7)
    found = intervals.rates(start, end, amount, edges) * np.diff(edges)
    assert found.sum() == pytest.approx(amount.sum())
