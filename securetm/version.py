"""The version of this package, stated once, and the files that it runs. The package's metadata are built from both.

A wheel carries the digest of each of these files (`PUBLISHED`). The digest of them all names the build: a checkout of the same
sources has the same one.
"""

from __future__ import annotations

TYPE_CHECKING = False  # a probe of health has no use for what only some functions need
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__version__ = "0.1.0"

DATA, PUBLISHED = (
    ("protocols", "threat_models", "audits"),
    "sources.json",
)  # beside the code or in `_data`; the list, in `_data`


def sources() -> dict[str, str]:
    """The SHA-256 of each file that this package runs or reads, by its name in the wheel."""
    import hashlib

    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(_files())}


def build_digest(files: Mapping[str, str] | None = None) -> str:
    """The digest that names a build: of the names and digests of all its files."""
    import hashlib

    lines = (f"{digest}  {name}\n" for name, digest in sorted((sources() if files is None else files).items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def published() -> dict[str, str] | None:
    """The digests that the wheel was built with; None in a checkout. Raises ValueError where the list is gone or damaged."""
    import json

    path = _here() / "_data" / PUBLISHED
    if not path.is_file():
        if path.parent.is_dir():  # which only a wheel has
            raise ValueError(f"{path} is gone")
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):  # UTF-8 that is none is a ValueError, too
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged")
    return found


def _here() -> Path:
    from pathlib import Path

    return Path(__file__).resolve().parent


def _files() -> Iterator[tuple[str, Path]]:
    here = _here()
    beside = here / "_data" if (here / "_data").is_dir() else here.parent
    for prefix, folder in (("securetm", here), *((f"securetm/_data/{one}", beside / one) for one in DATA)):
        for path in folder.rglob("*"):
            inside = path.relative_to(folder)
            passing = (
                inside.parts[0] == "_data"
                or path.suffix == ".pyc"
                or any(part.startswith((".", "__pycache__")) for part in inside.parts)
            )
            if path.is_file() and not passing:
                yield f"{prefix}/{inside.as_posix()}", path
