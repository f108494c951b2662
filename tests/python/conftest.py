# SPDX-License-Identifier: BSD-3-Clause
# tests/python/conftest.py: what all tests start from.
"""Interrupts reach the tests and the programs that they start, however pytest was started."""

import signal

import pytest

import quadriga
from quadriga.cli.main import status_of

# Shells start background jobs with SIGINT ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["cpu:2", "emulated:2,memory=1MiB"])
def engine(request):
    with quadriga.Engine(request.param) as made:
        yield made


@pytest.fixture
def run(capsys):
    """Runs a command line in this process: (status, output, errors)."""

    def call(*arguments):
        status = status_of([str(each) for each in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call
