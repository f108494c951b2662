# SPDX-License-Identifier: BSD-3-Clause
# bad_types.py: returns another type than it says.
def size() -> int:
    return "1"
