# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/policy_name.py: the options --policy and --eviction.
"""Names of policies, as far as they are registered when the command is called, and of rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from .. import policy

EVICTIONS = ("policy", "farthest_use", "least_recent", "read_first")


def _registered(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Refuses other names; the message lists those that are known."""
    known = policy.policies()
    if name is not None and name not in known:
        raise click.BadParameter(f"unknown policy {name!r}; registered are {', '.join(known)}")
    return name


def _complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    known = policy.policies()
    return [CompletionItem(name, help=known[name]) for name in known if name.startswith(incomplete)]


def policy_option() -> Callable[[Any], Any]:
    """The option as a decorator."""
    return click.option(
        "--policy",
        callback=_registered,
        shell_complete=_complete,
        metavar=f"[{'|'.join(policy.policies())}]",
        help="The scheduling policy; quadriga info describes each.",
    )


def eviction_option() -> Callable[[Any], Any]:
    """The option as a decorator."""
    return click.option(
        "--eviction",
        type=click.Choice(EVICTIONS),
        help="Which tile leaves a full device; policy: as the policy says.",
    )
