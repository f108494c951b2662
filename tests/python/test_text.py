# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_text.py: names and messages that aren't UTF-8, as file names may be.
import json
import os
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree

import numpy as np
import pytest

import quadriga
from quadriga import linalg, report

ODD = os.fsdecode(b"\xff")  # a byte that isn't UTF-8, as Python names it


def shown(code, **variables):
    """What a new process prints with these variables."""
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_variables_that_are_not_utf8_are_told():
    code = "import quadriga; print(ascii(quadriga.config.cache))"
    assert shown(code, QUADRIGA_CACHE=f"/{ODD}") == ascii(f"/{ODD}")
    code = "import quadriga\ntry: quadriga.Engine()\nexcept ValueError as e: print(ascii(str(e)))"
    assert "'\\udcff' (from QUADRIGA_TILE)" in shown(code, QUADRIGA_TILE=ODD)


def test_settings_are_what_they_were_set_to():
    with quadriga.config(spill=f"/{ODD}"):
        assert quadriga.config.spill == f"/{ODD}"


def test_files_with_such_names(tmp_path):
    folder = tmp_path / ODD
    folder.mkdir()
    a = np.diag(np.arange(1.0, 65.0))
    spill, trace = folder / "spill", folder / f"{ODD}.json"
    with quadriga.Engine("emulated:1,memory=64KiB", spill=spill, trace=trace) as engine:
        factor = linalg.cho_factor(a, engine=engine, tile=16)
        factor.save(folder / "factor")
        back = linalg.Factor.load(folder / "factor", engine=engine)
        assert back.logdet() == factor.logdet()
    with pytest.raises(quadriga.IoError) as failure:
        linalg.Factor.load(folder / "nowhere", devices="cpu:1")
    assert str(folder / "nowhere") in str(failure.value)
    report.write_report(trace, folder / "t.html")
    assert "<title>" in (folder / "t.html").read_text("utf-8")
    machine = folder / "machine.json"
    machine.write_text(quadriga.Machine.parse("emulated:2,memory=1MiB").to_json())
    assert len(quadriga.Machine.from_file(machine).devices) == 2
    with quadriga.Engine(f"machine={machine}", trace=True) as engine:
        assert json.loads(engine.trace_json())


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("error", [ValueError(ODD), ValueError("\ud800"), Silent()])
def test_failures_of_any_words_keep_their_type(engine, error):
    def fail(x):
        raise error

    engine.submit(quadriga.codelet(["update"])(fail), engine.data(np.zeros(2)).update())
    with pytest.raises(type(error)) as failure:
        engine.wait()
    assert failure.value is error


def test_messages_of_any_words_are_logged(caplog):
    quadriga._core.log(40, f"a {ODD}")
    assert caplog.messages == [f"a {ODD}"]


def test_pictures_leave_out_what_xml_cannot_hold(tmp_path):
    name = "bell\x07 escape\x1b[31m null\x00 next\x85 none\ufffe <&>"
    path = tmp_path / "t.json"
    with quadriga.Engine("cpu:1", trace=path) as engine:
        odd = quadriga.codelet(["update"], name=name)(lambda x: None)
        engine.submit(odd, engine.data(np.zeros(2)).update())
    trace = report.load(path)
    picture = report.to_svg(trace)
    xml.etree.ElementTree.fromstring(picture)
    assert "bell escape[31m null next none &lt;&amp;&gt;" in picture
    for text in (picture, report.to_html(trace), report.to_dot(trace)):
        assert not any(unicodedata.category(letter) in ("Cc", "Cs", "Cn") for letter in text
                       if letter not in "\n\t")  # fmt: skip
