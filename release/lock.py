"""Writes the two sets of pinned requirements with hashes: `python release/lock.py`, in an environment with pip.

`party` is what `pip install securetm` brings, `all` what `pip install 'securetm[all]'` brings, in the versions of
`requirements.txt`. Hashes are of the files that pip chooses on this machine: CPython 3.11 on Linux, x86-64. torch is not in the
set: builds for different processors have one version and different files, so whoever installs it chooses the file and its hash.
The README says how much each set is; it is measured here, on the packages of this environment.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APART = ("torch",)  # and what only that needs: nvidia-*, triton
_HEAD = """\
# {what}: pip install --require-hashes -r {name}
# Then securetm itself: pip install --no-deps securetm-*.whl
# For CPython 3.11 on Linux, x86-64. Written by: python release/lock.py
# {count} packages, {megabytes:,} MB without bytecode
"""
_TORCH = """\
# torch {version} is not in the list. Install the build that fits your processor first, with the hash that its publisher states
# (for the one without CUDA see torch's own pages); pip then takes the one that is there.
"""


def dependencies(extra: str = "") -> list[str]:
    """The requirements of the package, or those of an extra, with the extras that it names taken apart."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    if not extra:
        return list(project["dependencies"])
    found = []
    for one in project["optional-dependencies"][extra]:
        inner = re.fullmatch(r"securetm\[([\w,]+)\]", one)
        found += [part for name in inner[1].split(",") for part in dependencies(name)] if inner else [one]
    return found


def chosen(wanted: list[str]) -> list[tuple[str, str, str]]:
    """Name, version and SHA-256 of each file that pip would install for these."""
    with tempfile.TemporaryDirectory() as folder:
        asked, report = Path(folder) / "asked.txt", Path(folder) / "report.json"
        asked.write_text("\n".join(wanted), "utf-8")
        constraints = ("--constraint", str(ROOT / "requirements.txt"))
        command = (sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed")
        subprocess.run([*command, "--report", str(report), "--requirement", str(asked), *constraints], check=True)
        found = json.loads(report.read_text("utf-8"))["install"]
    files = ((one["metadata"], one["download_info"]["archive_info"]["hashes"]["sha256"]) for one in found)
    return sorted((str(about["name"]), str(about["version"]), str(digest)) for about, digest in files)


def megabytes(packages: Iterable[str]) -> int:
    """How much the files of these packages are, as their own lists say. Bytecode, which pip makes, is in none."""
    return round(sum(file.size or 0 for name in packages for file in metadata.files(name) or ()) / 1e6)


def write(name: str, what: str, wanted: list[str]) -> None:
    """Writes one set."""
    path, found = ROOT / "release" / f"requirements-{name}.txt", chosen(wanted)
    pinned = [one for one in found if one[0] not in APART]
    size = megabytes(package for package, _, _ in pinned)
    lines = [_HEAD.format(what=what, name=f"release/{path.name}", count=len(pinned), megabytes=size)]
    lines += [_TORCH.format(version=version.partition("+")[0]) for package, version, _ in found if package in APART]
    lines += [f"{package}=={version} \\\n    --hash=sha256:{digest}\n" for package, version, digest in pinned]
    path.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    write("party", "What a party or a coordinator needs", dependencies())
    write("all", "Everything", [*dependencies(), *dependencies("all")])
