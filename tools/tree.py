# SPDX-License-Identifier: BSD-3-Clause
# tools/tree.py: what the checks share: the files of a tree, and how findings are told.
import subprocess
import sys
from pathlib import Path

EXAMPLES = "tools/examples/"


def files(root: Path, *suffixes: str) -> list[Path]:
    """Files under `root`, relative to it: those git knows or would add, else all of them.

    The bad examples are left out unless `root` is one of them.
    """
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "--deduplicate"]
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(
            "\n"
        )
        found = [Path(name) for name in names if name and not name.startswith(EXAMPLES)]
    else:
        found = [path.relative_to(root) for path in root.rglob("*")]
    return sorted(
        path
        for path in found
        if (root / path).is_file() and (not suffixes or path.suffix in suffixes)
    )


def root_argument() -> Path:
    """The tree to check: the first argument, else this repository."""
    return Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()


def finish(name: str, checked: int, findings: list[str]) -> int:
    """Prints the findings; 1 if there are any, 2 if there was nothing to check."""
    for finding in findings:
        print(finding)
    print(f"{name}: {checked} files, {len(findings)} findings")
    if checked == 0:
        return 2
    return 1 if findings else 0
