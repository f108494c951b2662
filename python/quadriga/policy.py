# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/policy.py: which policies there are.
"""Policies, which choose device and order of tasks; programs in C++ register their own."""

from __future__ import annotations

from . import _core


def policies() -> dict[str, str]:
    """Policies that engines, the setting `policy` and ``--policy`` accept.

    Returns
    -------
    dict
        What each does, in one line, by name; those registered by `quadriga/policy.h` included.

    Examples
    --------
    >>> import quadriga
    >>> "steal" in quadriga.policies()
    True
    """
    return dict(_core.policies())
