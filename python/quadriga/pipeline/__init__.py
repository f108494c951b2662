# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/__init__.py: streams: chunks through stages on all devices.
"""Streams: chunks that pass a source, copies, kernels and bodies, several at a time."""

from ..host_arrays import empty
from .chunk import Chunk, Through
from .indexed import IndexedSource
from .pipeline import Pipeline
from .stats import ChunkFailure, PipelineEstimate, PipelineStats, StageStats

__all__ = [
    "Chunk",
    "ChunkFailure",
    "IndexedSource",
    "Pipeline",
    "PipelineEstimate",
    "PipelineStats",
    "StageStats",
    "Through",
    "empty",
]


def __dir__() -> list[str]:
    return __all__
