# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/intervals.py: sets of half-open intervals, in NumPy.
"""Unions, gaps and bucket coverage of intervals ``[start, end)``, without a loop an interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Intervals(NamedTuple):
    """Disjoint, sorted, non-empty intervals, as ``merge`` makes them."""

    start: Integers
    end: Integers

    @property
    def length(self) -> int:
        return int((self.end - self.start).sum())


def merge(start: Integers, end: Integers) -> Intervals:
    """The union of any intervals.

    Examples
    --------
    >>> merge(np.array([5, 0, 2]), np.array([6, 3, 4]))
    Intervals(start=array([0, 5]), end=array([4, 6]))
    """
    kept = end > start
    start, end = start[kept], end[kept]
    if len(start) == 0:
        return Intervals(start, end)
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(start[first], reach[last])


def unite(*parts: Intervals) -> Intervals:
    """The union of unions."""
    return merge(np.concatenate([p.start for p in parts]), np.concatenate([p.end for p in parts]))


def singly(start: Integers, end: Integers) -> Intervals:
    """When exactly one of any intervals is busy.

    Examples
    --------
    >>> singly(np.array([0, 2]), np.array([5, 9]))
    Intervals(start=array([0, 5]), end=array([2, 9]))
    """
    times = np.concatenate((start, end))
    order = np.argsort(times, kind="stable")
    steps = np.concatenate((np.ones(len(start), np.int64), -np.ones(len(end), np.int64)))
    busy = np.cumsum(steps[order])[:-1] == 1
    times = times[order]
    return merge(times[:-1][busy], times[1:][busy])


def complement(busy: Intervals, end: int) -> Intervals:
    """What ``[0, end)`` has beside ``busy``."""
    starts = np.concatenate((np.zeros(1, np.int64), busy.end))
    ends = np.concatenate((busy.start, np.array([end], np.int64)))
    kept = ends > starts
    return Intervals(starts[kept], ends[kept])


def common_length(one: Intervals, other: Intervals) -> int:
    """How long both are busy at once."""
    return one.length + other.length - unite(one, other).length


def busy_before(start: Integers, end: Integers, at: Integers) -> Integers:
    """Time that intervals, which may overlap, spend before each point of ``at``, summed."""
    return _past(start, at) - _past(end, at)


def _past(points: Integers, at: Integers) -> Integers:
    """The sum over points p of max(0, t - p), for each t of ``at``."""
    points = np.sort(points)
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(points, dtype=np.int64)))
    count = np.searchsorted(points, at)
    return count * at - sums[count]


def coverage(start: Integers, end: Integers, edges: Integers) -> Integers:
    """Busy time in each bucket between neighbouring ``edges``.

    Examples
    --------
    >>> coverage(np.array([0, 15]), np.array([12, 20]), np.array([0, 10, 20]))
    array([10,  7])
    """
    return np.diff(busy_before(start, end, edges))


def rates(start: Integers, end: Integers, amount: Integers, edges: Integers) -> NDArray[np.float64]:
    """Amount a nanosecond in each bucket, every interval's amount spread evenly over its time.

    Examples
    --------
    >>> rates(np.array([0]), np.array([10]), np.array([100]), np.array([0, 5, 20]))
    array([10.        ,  3.33333333])
    """
    if len(start) == 0:
        return np.zeros(len(edges) - 1)
    end = np.maximum(end, start + 1)
    slopes = amount / (end - start)
    times = np.concatenate((start, end))
    order = np.argsort(times, kind="stable")
    times = times[order]
    slope = np.cumsum(np.concatenate((slopes, -slopes))[order])
    passed = np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(times))))
    before = np.interp(edges, times, passed)
    return np.maximum(np.diff(before) / np.maximum(np.diff(edges), 1), 0.0)
