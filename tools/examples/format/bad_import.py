# SPDX-License-Identifier: BSD-3-Clause
# bad_import.py: imports what it does not use.
import os
