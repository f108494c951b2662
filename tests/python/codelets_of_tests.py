# SPDX-License-Identifier: BSD-3-Clause
# tests/python/codelets_of_tests.py: codelets that several tests submit.
import quadriga


@quadriga.codelet(access=["read", "update"])
def add(x, y):
    y += x


@quadriga.codelet(access=["update"])
def increment(x):
    x += 1


def on_devices(access, body):
    """A codelet that emulated devices run, too."""
    return quadriga.codelet(access=access, host_only=False)(body)


class Planned(Exception):
    """Raised on purpose."""


@quadriga.codelet(access=["read"])
def documented(x, by=1):
    """The sum, so many times."""
    return x.sum() * by
