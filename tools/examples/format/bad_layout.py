# SPDX-License-Identifier: BSD-3-Clause
# bad_layout.py: laid out by nobody.
x = [ 1,2 ]
