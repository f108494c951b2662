# SPDX-License-Identifier: BSD-3-Clause
# bad_test.py: a test that fails.


def test_that_fails():
    assert 1 + 1 == 3
