# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_cli_completion.py: what shells complete of the command line.
import os
import subprocess
import sys

import pytest
from click.shell_completion import BashComplete

from quadriga.cli.main import _COMMANDS, DONE, cli


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run, shell):
    status, out, _ = run("completion", shell)
    assert status == DONE
    assert "quadriga" in out


COMPLETED = {
    ("",): set(_COMMANDS),
    ("ca",): {"calibrate"},
    ("bench", ""): {"copies", "gemm", "messages", "overhead", "papers", "potrf", "spmv", "streams"},
    ("completion", ""): {"bash", "fish", "zsh"},
    ("cg", "--prec"): {"--precondition", "--precision"},
    ("solve", "--policy", ""): {"affinity", "data-first", "earliest-finish", "steal", "weight"},
    ("simulate", "c"): {"cholesky", "cho_solve"},
    ("launch", "--keep"): {"--keep-going"},
    ("mpi-preload", "--mpi", ""): {"abi", "mpich", "openmpi"},
    ("calibrate", "--q"): {"--quick"},
}


def completed(words):
    """What a shell gets for the last of the words: (kinds, values)."""
    found = BashComplete(cli, {}, "quadriga", "_QUADRIGA_COMPLETE").get_completions(
        list(words[:-1]), words[-1]
    )
    return {each.type for each in found}, {each.value for each in found if each.type == "plain"}


def test_the_shell_asks_the_command():
    asked = {"_QUADRIGA_COMPLETE": "bash_complete", "COMP_WORDS": "quadriga ca", "COMP_CWORD": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", "from quadriga.cli import main; main()"],
        env=os.environ | asked, capture_output=True, text=True,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("plain,calibrate\n", "")


@pytest.mark.parametrize("words", COMPLETED, ids=" ".join)
def test_what_a_shell_completes(words):
    assert completed(words)[1] == COMPLETED[words]


@pytest.mark.parametrize("command", sorted(_COMMANDS))
def test_a_shell_completes_options_of_every_command(command):
    assert "--help" in completed([command, "--"])[1]


@pytest.mark.parametrize(
    "words",
    [("solve", ""), ("cg", ""), ("report", ""), ("simulate", ""), ("simulate", "--machine", ""),
     ("launch", "-n", "2", ""), ("mpi-preload", ""), ("calibrate", "-o", "")],
    ids=" ".join,
)  # fmt: skip
def test_a_shell_completes_names_of_files(words):
    assert "file" in completed(words)[0]
