"""Shows that a release can be made again, byte for byte: `make release-check`.

The sources are copied into two folders of different depth, with other times and modes, and built under two dates. Then the
wheel is looked into: the list of what it depends on, and the digests of its files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATES = (946_684_800, 1_893_456_000)  # 2000 and 2030
UMASKS = (0o022, 0o077)


def copied(to: Path, date: int) -> Path:
    """The files that git knows, or would take, at another place and of another time."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
            os.utime(to / name, (date, date))
    return to


def built(sources: Path, to: Path, umask: int) -> dict[str, str]:
    """The SHA-256 of wheel and source archive, by name."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(to), str(sources)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, umask=umask)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(to.iterdir())}


def look_into(wheel: Path) -> list[str]:
    """What the wheel says of itself, checked against what is in it."""
    with zipfile.ZipFile(wheel) as archive:
        (bill,) = (name for name in archive.namelist() if ".dist-info/sboms/" in name)
        parts = json.loads(archive.read(bill))["components"]
        listed = json.loads(archive.read("securetm/_data/sources.json"))
        wrong = [name for name, digest in listed.items() if hashlib.sha256(archive.read(name)).hexdigest() != digest]
        inside = {name for name in archive.namelist() if name.startswith("securetm/") and not name.endswith("/sources.json")}
    if wrong or inside != set(listed):
        sys.exit(f"the wheel holds other files than it says: {sorted({*wrong, *(inside ^ set(listed))})[:5]}")
    return [f"{len(listed)} files with their digests", f"{len(parts)} packages in {bill}"]


def main() -> None:
    """Builds twice and compares."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for place, date, umask in zip(("first", "second/deep/er"), DATES, UMASKS, strict=True):
            sources = copied(Path(folder) / place / "securetm", date)
            found.append(built(sources, Path(folder) / place / "dist", umask))
        if found[0] != found[1]:
            sys.exit(f"two builds of the same sources differ: {found}")
        for name, digest in found[0].items():
            print(f"{digest}  {name}")
        (wheel,) = (Path(folder) / "first" / "dist").glob("*.whl")
        print("The same bytes from two folders on two dates;", "; ".join(look_into(wheel)))


if __name__ == "__main__":
    main()
