# SPDX-License-Identifier: BSD-3-Clause
# tests/python/paces_of_tests.py: for what only time shows, on machines that others may keep busy.
"""Where an event can tell that something has happened, tests wait for the event instead."""

import time


def at_some_pace(check, paces=(1, 8, 64, 512)):
    """Calls `check(pace)`, whose sleeps are `pace` times as long, until it holds once.

    A pause of this process or of one of its threads weighs the less the longer they are. What is
    wrong at every pace fails at the last.
    """
    for pace in paces[:-1]:
        try:
            return check(pace)
        except AssertionError:
            continue
    return check(paces[-1])


def becomes(condition, seconds=240):
    """Whether a condition comes true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
