# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/formats.py: numbers as people read them.
"""Times, bytes and shares as short text, with the same units everywhere in the report."""

from __future__ import annotations

import math
import re

# What XML 1.0 has no place for: control characters, halves of surrogate pairs, two non-characters.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def significant(value: float, digits: int = 3) -> str:
    """Digits that matter, never an exponent.

    Examples
    --------
    >>> significant(0.01234), significant(28.94), significant(1234.5), significant(8.0)
    ('0.0123', '28.9', '1,234', '8.00')
    """
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 9)}f}"


def time(seconds: float) -> str:
    """
    Examples
    --------
    >>> time(28.94), time(0.00695), time(90), time(0)
    ('28.9 s', '6.95 ms', '90.0 s', '0 s')
    """
    if seconds < 0.5e-9:
        return "0 s"
    for scale, unit in _TIMES:
        if seconds >= scale * 0.9995 or unit == "ns":
            break
    return f"{significant(seconds / scale)} {unit}"


def size(count: float) -> str:
    """
    Examples
    --------
    >>> size(0), size(8388608), size(10.27 * 2**30)
    ('0 B', '8.00 MiB', '10.3 GiB')
    """
    power = 0
    while count >= 999.5 and power < len(_BYTES) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.0f} B" if power == 0 else f"{significant(count)} {_BYTES[power]}"


def rate(bytes_per_second: float) -> str:
    """
    Examples
    --------
    >>> rate(6e9), rate(540e6)
    ('6.00 GB/s', '540 MB/s')
    """
    for scale, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if bytes_per_second >= scale:
            return f"{significant(bytes_per_second / scale)} {unit}"
    return f"{bytes_per_second:.0f} B/s"


def flops(flops_per_second: float) -> str:
    """
    Examples
    --------
    >>> flops(44.31e12), flops(87e9)
    ('44.3 TFLOP/s', '87.0 GFLOP/s')
    """
    scale, unit = (1e12, "TFLOP/s") if flops_per_second >= 0.9995e12 else (1e9, "GFLOP/s")
    return f"{significant(flops_per_second / scale)} {unit}"


def share(part: float, whole: float = 1.0) -> str:
    """
    Examples
    --------
    >>> share(0.96), share(1, 3), share(0.004), share(1, 0), share(1e-5)
    ('96 %', '33 %', '0.4 %', '-', '< 0.1 %')
    """
    if whole <= 0:
        return "-"
    percent = 100 * part / whole
    if percent in (0, 100):
        return f"{percent:.0f} %"
    if 99 < percent < 100:
        return f"{min(percent, 99.9):.1f} %"
    if percent < 0.05:
        return "< 0.1 %"
    return f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


def count(value: float) -> str:
    """
    Examples
    --------
    >>> count(195112)
    '195,112'
    """
    return f"{value:,.0f}"


def plural(value: int, noun: str) -> str:
    """
    Examples
    --------
    >>> plural(1, "device"), plural(2, "device"), plural(2, "copy"), plural(2, "way")
    ('1 device', '2 devices', '2 copies', '2 ways')
    """
    if value != 1:
        changes = noun.endswith("y") and noun[-2:-1] not in "aeiou"
        noun = noun[:-1] + "ies" if changes else noun + "s"
    return f"{value:,} {noun}"


def printable(text: str) -> str:
    """Without the characters that no XML, and so no SVG, can hold; names of tasks may have them.

    Examples
    --------
    >>> printable("bell" + chr(7) + " and escape" + chr(27))
    'bell and escape'
    """
    return _UNPRINTABLE.sub("", text)
