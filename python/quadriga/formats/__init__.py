# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/formats/__init__.py: files of the field as inputs and outputs of pipelines.
"""Readers that yield chunks, and writers: voltages, SIGPROC filterbanks, FASTA."""

from .fasta import fasta
from .filterbank import FilterbankWriter, filterbank
from .filterbank_header import FilterbankHeader, read_filterbank_header
from .voltages import voltages

__all__ = [
    "FilterbankHeader",
    "FilterbankWriter",
    "fasta",
    "filterbank",
    "read_filterbank_header",
    "voltages",
]


def __dir__() -> list[str]:
    return __all__
