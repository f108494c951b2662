# SPDX-License-Identifier: BSD-3-Clause
# python/bad_environment.py: reads the environment.
import os

HOME = os.environ["HOME"]
