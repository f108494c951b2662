# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_settings.py: arguments over quadriga.config over QUADRIGA_* over a file.
import io
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import quadriga
from quadriga import linalg
from quadriga.cli.main import status_of
from quadriga.settings import settings


def test_attributes_and_keys():
    with quadriga.config(tile=128):
        assert quadriga.config.tile == quadriga.config["tile"] == 128
        quadriga.config.tile = 256
        assert quadriga.config["tile"] == 256
        quadriga.config["trace"] = True
        assert quadriga.config.trace is True
        del quadriga.config.trace
        assert quadriga.config.trace is False
    assert quadriga.config.tile == 0
    assert "tile" in quadriga.config
    assert "nothing" not in quadriga.config
    assert len(quadriga.config) == len(list(quadriga.config)) == len(dict(quadriga.config))
    assert "policy='affinity'" in repr(quadriga.config)
    assert "affinity" in quadriga.config._repr_html_()


def test_blocks_nest_and_restore_after_errors():
    with pytest.raises(RuntimeError), quadriga.config(policy="steal"):
        with quadriga.config(policy="affinity", window=100):
            assert quadriga.config.policy == "affinity"
        assert quadriga.config.policy == "steal"
        raise RuntimeError
    assert quadriga.config.policy == "affinity"
    assert quadriga.config.window == 16384


def test_what_is_unknown_or_wrong_says_what_is_known():
    with pytest.raises(AttributeError, match="policy"):
        quadriga.config.nothing  # noqa: B018
    with pytest.raises(quadriga.InvalidArgument, match="nothing.*policy"):
        quadriga.config["nothing"] = 1
    with pytest.raises(quadriga.InvalidArgument, match="from 1 to"):
        quadriga.config.window = "luck"
    with pytest.raises(quadriga.InvalidArgument), quadriga.config(tile=5, window="luck"):
        pass
    assert quadriga.config.tile == 0


def test_show_config():
    out = io.StringIO()
    with quadriga.config(tile=99):
        quadriga.show_config(file=out)
    lines = out.getvalue().splitlines()
    assert any(line.split()[:3] == ["tile", "99", "program"] for line in lines)
    assert len(lines) == len(quadriga.config)


def run(program, folder, keep_lines=False, **variables):
    import os

    clean = {k: v for k, v in os.environ.items() if not k.startswith("QUADRIGA_")}
    environment = clean | {"XDG_CONFIG_HOME": str(folder)} | variables
    ended = subprocess.run(
        [sys.executable, "-c", "import quadriga\n" + program],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    words = ended.stdout.splitlines() if keep_lines else ended.stdout.split()
    return words, ended.stderr


def test_the_order_of_sources(tmp_path):
    program = "print(quadriga.config.devices, quadriga.default_engine().machine.devices[0].name)"
    (tmp_path / "quadriga.json").write_text(json.dumps({"devices": "emulated:1,memory=1MiB"}))
    assert run(program, tmp_path)[0] == ["emulated:1,memory=1MiB", "emulated0"]
    variable = {"QUADRIGA_DEVICES": "cpu:1"}
    assert run(program, tmp_path, **variable)[0] == ["cpu:1", "cpu"]
    above = "quadriga.config.devices = 'emulated:2,memory=2MiB'\n" + program
    assert run(above, tmp_path, **variable)[0] == ["emulated:2,memory=2MiB", "emulated0"]
    argument = "print(quadriga.Engine('cpu:1').machine.devices[0].name)"
    assert run(argument, tmp_path)[0] == ["cpu"]


def test_wrong_sources_are_named(tmp_path):
    program = "print(quadriga.config.window)"
    assert "QUADRIGA_WINDOW" in run(program, tmp_path, QUADRIGA_WINDOW="luck")[1]
    (tmp_path / "quadriga.json").write_text("{")
    assert "quadriga.json" in run(program, tmp_path)[1]
    (tmp_path / "quadriga.json").unlink()
    (tmp_path / "quadriga.json").mkdir()
    assert "IoError: can't read the settings in ./quadriga.json" in run(program, tmp_path)[1]


def test_columns_stay_in_line(tmp_path):
    program = "quadriga.show_config()"
    ended = run(program, tmp_path, QUADRIGA_HOST_MEMORY="2GiB", keep_lines=True)
    meanings = [setting.meaning for setting in settings()]
    places = {line.index(each) for line, each in zip(ended[0], meanings, strict=True)}
    assert len(places) == 1


def test_threads_limit_what_computes(tmp_path):
    program = "print(quadriga.Engine().machine.devices[0].cores, quadriga._core.usable_cores())"
    (cores, usable), _ = run(program, tmp_path, QUADRIGA_THREADS="1")
    assert cores == "1"
    (cores, usable), _ = run(program, tmp_path, QUADRIGA_THREADS="1000")
    assert cores == usable


def test_messages_go_to_logging(caplog):
    caplog.set_level("DEBUG", logger="quadriga")
    with quadriga.config(log_level="debug"), quadriga.Engine("emulated:1,memory=1MiB"):
        pass
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert any(level == "INFO" and "emulated0" in text for level, text in said)
    assert any(level == "DEBUG" and "engine ended" in text for level, text in said)
    caplog.clear()
    with quadriga.Engine("cpu:999"):
        pass
    (record,) = caplog.records  # the level is back at warning
    assert record.levelname == "WARNING" and "999" in record.getMessage()


class TestTypes:
    def test_values_have_the_type_of_their_setting(self):
        assert {key: type(value) for key, value in quadriga.config.items()} == {
            **dict.fromkeys(quadriga.config, str),
            **dict.fromkeys(
                ["tile", "trace_seconds", "window", "threads", "host_memory", "renaming"], int
            ),
            "planning_percent": int,
            **dict.fromkeys(["trace", "allow_tf32", "reproducible", "divide", "cuda_pool"], bool),
        }

    @pytest.mark.parametrize(
        ("key", "given", "value"),
        [
            ("trace", "ON", True),
            ("trace", "Yes", True),
            ("trace", 1, True),
            ("trace", "FALSE", False),
            ("host_memory", "2GiB", 2 << 30),
            ("host_memory", 3e9, 3_000_000_000),
            ("renaming", "1GiB", 1 << 30),
            ("tile", "512", 512),
            ("tile", np.int32(64), 64),
            ("log_level", "DEBUG", "debug"),
            ("log_level", "Warning", "warning"),
            ("spill", pathlib.Path("/tmp/spilled"), "/tmp/spilled"),
        ],
    )
    def test_values_are_taken_as_they_are_written(self, key, given, value):
        with quadriga.config(**{key: given}):
            assert quadriga.config[key] == value
            assert type(quadriga.config[key]) is type(value)
            assert {setting.key: setting.text for setting in settings()}[key]

    @pytest.mark.parametrize(("key", "given"), [("tile", True), ("trace", 2), ("window", 1.5)])
    def test_values_of_another_type_are_refused(self, key, given):
        with pytest.raises(quadriga.InvalidArgument, match=f"setting {key}"):
            quadriga.config[key] = given

    def test_none_is_no_value(self):
        with pytest.raises(quadriga.InvalidType, match="setting spill: None; delete it"):
            quadriga.config.spill = None

    def test_the_environment_in_any_case(self, tmp_path):
        program = "print(quadriga.config.trace, quadriga.config.log_level)"
        variables = {"QUADRIGA_TRACE": "True", "QUADRIGA_LOG_LEVEL": "DEBUG"}
        assert run(program, tmp_path, **variables)[0] == ["True", "debug"]

    def test_json_of_the_command_line(self, capsys):
        with quadriga.config(host_memory="1GiB", trace=True):
            assert status_of(["info", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["settings"]
        assert found["host_memory"]["value"] == 1 << 30
        assert (found["trace"]["value"], found["tile"]["value"]) == (True, 0)


class TestNamed:
    """What is ignored or out of range is said, with the setting's name."""

    @pytest.mark.parametrize("devices", ["cpu:1", "emulated:1,memory=1MiB", "auto"])
    def test_a_description_that_is_missing(self, devices):
        missing = pytest.raises(quadriga.IoError, match="/nonexistent")
        with quadriga.config(machine="/nonexistent"), missing:
            quadriga.Engine(devices)

    def test_a_description_that_is_not_used(self, caplog):
        with quadriga.config(machine="machines/idgraf.json"):
            quadriga.Engine("emulated:1,memory=1MiB").close()
        assert "setting machine: 'machines/idgraf.json' describes none" in caplog.text

    @pytest.mark.parametrize(
        ("devices", "given", "said"),
        [
            ("cpu:1", {"schedule_log": "/nonexistent/log"}, "schedule_log: '/nonexistent/log'"),
            ("cpu:1", {"spill_rate": "2GB/s"}, "spill_rate: '2GB/s' isn't used without"),
            ("cpu:1", {"spill_rate": "2GB/s", "spill": "file"}, "spill_rate: '2GB/s' isn't used"),
            ("emulated:1,memory=1MiB", {"spill_rate": "2GB/s"}, "'2GB/s' isn't used without"),
            ("emulated:1,memory=1MiB", {"spill_rate": "2GB/s", "spill": "file"}, ""),
        ],
    )
    def test_a_setting_that_changes_nothing(self, devices, given, said, caplog, tmp_path):
        if "spill" in given:
            given = given | {"spill": str(tmp_path / "file")}
        with quadriga.config(**given):
            quadriga.Engine(devices).close()
        assert said in caplog.text
        assert ("isn't used" in caplog.text) == bool(said)

    @pytest.mark.parametrize("value", ["99999999999", "-1", "1.5", "2147483648"])
    def test_a_number_out_of_range(self, value, monkeypatch):
        monkeypatch.setenv("QUADRIGA_TILE", value)
        with pytest.raises(quadriga.InvalidArgument) as refused:
            quadriga.config["tile"]
        for word in ("tile", value, "QUADRIGA_TILE", "from 0 to 2147483647"):
            assert word in str(refused.value)

    @pytest.mark.parametrize("latency", ["1e300s", "1e7s"])
    def test_a_latency_that_no_link_has(self, latency):
        with pytest.raises(quadriga.InvalidArgument, match=f"latency {latency} is more than"):
            quadriga.Engine(f"emulated:1,latency={latency}")


class TestEmpty:
    """An empty text isn't what isn't given."""

    @pytest.mark.parametrize("devices", ["", "  "])
    def test_devices(self, devices):
        for call in (quadriga.Engine, lambda given: linalg.matmul([[1.0]], [[1.0]], devices=given)):
            with pytest.raises(
                quadriga.InvalidArgument, match="devices is .*expected a device list"
            ):
                call(devices)
        with pytest.raises(quadriga.InvalidType, match="devices is 2; expected a device list"):
            quadriga.Engine(2)

    def test_policy(self):
        with pytest.raises(quadriga.InvalidArgument, match="policy is ''; expected a name"):
            quadriga.Engine("cpu:1", policy="")

    def test_in_a_command(self, tmp_path, capsys):
        np.save(tmp_path / "a.npy", np.eye(3))
        words = ["cholesky", str(tmp_path / "a.npy"), "-o", str(tmp_path / "l.npy")]
        assert status_of([*words, "--devices", ""]) == 2
        assert "devices is ''; expected a device list" in " ".join(capsys.readouterr().err.split())


def test_names_that_have_no_text():
    """Half of a surrogate pair; others, as of bytes that aren't UTF-8, are taken."""
    with pytest.raises(quadriga.InvalidArgument, match=r"name is '\\ud800x'; expected text"):
        quadriga.codelet(access=["read"], name="\ud800x")(lambda x: None)
    assert quadriga.codelet(access=["read"], name="\udcffx")(lambda x: None).name == "\udcffx"
