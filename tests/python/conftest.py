# SPDX-License-Identifier: BSD-3-Clause
# tests/python/conftest.py: what all tests start from.
"""Interrupts reach the tests and the programs that they start, however pytest was started."""

import signal

# Shells start background jobs with SIGINT ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
