# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/demo.py: `quadriga demo`: real terrain from few of its points, on small devices.
"""Kriging of the Jacksboro fault with a matrix larger than all devices, accepted by itself.

The demo learns heights at points chosen at random, predicts all others, compares them with the
survey and with SciPy, and writes a report on the run and a picture.
"""

from __future__ import annotations

import json
import time

from ._demo.options import REFERENCE_POINTS, Options, sizes
from .errors import TooLarge, Unavailable

__all__ = ["REFERENCE_POINTS", "Options", "run", "sizes"]


def run(options: Options | None = None) -> int:
    """Runs the demo and prints what it finds.

    Parameters
    ----------
    options : Options, optional

    Returns
    -------
    int
        0 if the demo accepts what it found; 1 if not, or if the factor fits nowhere.
    """
    try:
        from ._demo.study import Study
        from ._demo.telling import Teller
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"the demo needs more packages ({error.name}): pip install 'quadriga[demo]'"
        ) from error

    options = options or Options()
    start = time.perf_counter()
    teller = Teller(quiet=options.json)
    study = Study(options, teller)
    try:
        findings = study.run(sizes(study.count))
    except TooLarge as error:
        teller.refused(study.count, str(error))
        if options.json:
            print(json.dumps({"accepted": False, "points": study.count, "refused": str(error)}))
        return 1
    findings["seconds"] = time.perf_counter() - start
    teller.end(findings)
    if options.json:
        print(json.dumps(findings))
    return 0 if findings["accepted"] else 1
