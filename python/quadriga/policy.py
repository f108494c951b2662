# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/policy.py: which policies there are.
"""Policies, which choose device and order of tasks; programs in C++ register their own."""

from __future__ import annotations

from . import _core


def policies() -> dict[str, str]:
    """The policies that engines, the setting `policy` and ``--policy`` accept.

    Returns
    -------
    dict of str to str
        From each name to one line that describes it; includes those registered in C++
        (`quadriga/policy.h`).

    Examples
    --------
    >>> import quadriga
    >>> "steal" in quadriga.policies()
    True
    """
    return dict(_core.policies())
