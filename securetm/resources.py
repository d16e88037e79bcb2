"""Finds the three data folders, in the installed wheel or beside the checkout, and the user's cache. It reads names only."""

from __future__ import annotations

import os
from pathlib import Path

from securetm.errors import NoSuchToml, NotFound

FOLDERS = ("protocols", "threat_models", "audits")
_HERE = Path(__file__).resolve().parent


def data_folder(folder: str) -> Path:
    """The data folder of that name, wherever this copy of securetm keeps it."""
    if folder not in FOLDERS:
        raise NotFound("data folder", folder, FOLDERS)
    installed = _HERE / "_data" / folder
    if installed.is_dir():
        return installed
    if (_HERE.parent / "pyproject.toml").is_file() and (_HERE.parent / folder).is_dir():
        return _HERE.parent / folder
    raise NotFound("data folder", folder, ())


def toml_names(folder: str, below: str = "") -> tuple[str, ...]:
    """The names of the TOML files in a data folder, sorted."""
    return tuple(sorted(path.stem for path in (data_folder(folder) / below).glob("*.toml")))


def named_toml(folder: str, name: str, *, below: str = "", kind: str) -> Path:
    """The TOML file called `name`: a path if it looks like one, else a name in that data folder."""
    if name.endswith(".toml") and Path(name).is_file():
        return Path(name)
    if name.endswith(".toml") or Path(name).name != name:
        raise NoSuchToml(kind, name, toml_names(folder, below))
    path = data_folder(folder) / below / f"{name}.toml"
    if not path.is_file():
        raise NotFound(kind, name, toml_names(folder, below))
    return path


def user_cache() -> Path:
    """The folder of everything that this user's processes keep and could compute again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "securetm"
