# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/completing.py: what a shell completes where click doesn't know it.
"""Completion of arguments that are files or one of some words."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem


def files_and(
    *words: str,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completes one of the words, and names of files."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = [CompletionItem(word) for word in words if word.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")]

    return complete
