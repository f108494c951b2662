# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/kernels.py: the arguments of a kernel as a stage.
"""Which fields a kernel uses, and how."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..codelets import Codelet, Cost
from ..cuda_source import CudaSource
from ..errors import InvalidArgument
from . import given, returned
from .chunk import Kind, Shape
from .front import KernelUse, Stage


def kernel_stage(
    function: Callable[..., Any] | None,
    is_first: bool,
    *,
    cuda: CudaSource | Callable[..., Any] | None,
    arrays: str | None,
    reads: Sequence[str] | None,
    updates: Sequence[str],
    writes: Mapping[str, Shape | Kind] | None,
    temporaries: Mapping[str, Shape | Kind] | None,
    returns: Any,
    constants: Mapping[str, Any] | None,
    name: str | None,
    cost: Cost | None,
) -> Stage:
    """A stage from the arguments of `Pipeline.kernel`."""
    fixed = dict(constants or {})
    numbers = {key: value for key, value in fixed.items() if not isinstance(value, np.ndarray)}
    shared = {key: value for key, value in fixed.items() if key not in numbers}
    if reads is None:
        reads = _presumed(function or cuda, fixed) if returns is not None and not updates else None
    if reads is None:
        reads = ["array"] if is_first and not updates else []
    uses = _uses(reads, shared, updates, writes or {}, temporaries or {})
    made = Codelet(
        function,
        [use.access for use in uses],
        name=name,
        host_only=False,
        cost=cost,
        cuda=cuda,
        arrays=arrays,
    )
    fields = returned.fields(returns, made)
    for field in fields:
        if any(use.name == field.name and use.access != "read" for use in uses):
            raise InvalidArgument(f"field {field.name!r} is written and returned: made twice")
    return Stage("kernel", made.name, codelet=made, uses=uses, parameters=numbers, returns=fields)


def _uses(
    reads: Sequence[str],
    constants: Mapping[str, np.ndarray[Any, Any]],
    updates: Sequence[str],
    writes: Mapping[str, Shape | Kind],
    temporaries: Mapping[str, Shape | Kind],
) -> list[KernelUse]:
    """A kernel's operands, in the order in which it is called with them."""
    uses = [KernelUse(field, "read") for field in given.names("reads", reads)]
    uses += [
        KernelUse(f"constant {field}", "read", constant=np.ascontiguousarray(value))
        for field, value in constants.items()
    ]
    uses += [KernelUse(field, "update") for field in given.names("updates", updates)]
    uses += [
        KernelUse(field, "write", given.shape(field, shape)) for field, shape in writes.items()
    ]
    uses += [
        KernelUse(field, "write", given.shape(field, shape), temporary=True)
        for field, shape in temporaries.items()
    ]
    return uses


def _presumed(function: Any, constants: Mapping[str, Any]) -> list[str] | None:
    """The fields that a function's parameters name; None if it doesn't tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        each.name
        for each in parameters
        if each.kind in named and each.default is each.empty and each.name not in constants
    ]
