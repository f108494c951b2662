# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/__init__.py: the parts of `quadriga demo`, which nothing else imports.
"""The demo's parts: its data, its model, the work on devices, the checks and the pictures."""
