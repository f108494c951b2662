# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/policy.py: lists the policies.
"""Policies, which choose devices and order of tasks; C++ programs can register their own."""

from __future__ import annotations

from . import _core


def policies() -> dict[str, str]:
    """The policies that engines, the setting `policy` and ``--policy`` accept.

    Returns
    -------
    dict of str to str
        Maps each name to a one-line description; includes policies registered in C++
        (`quadriga/policy.h`).

    Examples
    --------
    >>> import quadriga
    >>> "steal" in quadriga.policies()
    True
    """
    return dict(_core.policies())
