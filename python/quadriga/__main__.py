# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/__main__.py: `python -m quadriga` is the command `quadriga`.
"""The command line."""

from .cli import main

if __name__ == "__main__":
    main()
