"""Where a passphrase comes from: a file, an environment variable or the terminal. Never an argument, which all may list."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from pathlib import Path

from securetm.credentials.keys import Passphrase, are_encrypted, no_new_passphrase, passphrase_needed, unusable_passphrase
from securetm.errors import NoSuchPath
from securetm.private_files import check_private

VARIABLE = "SECURETM_PASSPHRASE"
_MOST = 10_000


def passphrase_for(folder: Path, file: Path | None) -> Passphrase | None:
    """The passphrase of the keys in this folder; nothing if they are not encrypted."""
    if not are_encrypted(folder):
        return None
    return given_passphrase(file) or _typed(f"Passphrase of the keys in {folder}: ", str(folder))


def known_passphrase(file: Path, named: Path | None) -> Passphrase:
    """The passphrase of a file that is encrypted."""
    return given_passphrase(named) or _typed(f"Passphrase of {file}: ", str(file))


def new_passphrase(file: Path | None, wanted: bool) -> Passphrase | None:
    """The passphrase for new keys, typed twice where a terminal asks; nothing if none is wanted or given."""
    if given := given_passphrase(file):
        return given
    if not wanted:
        return None
    typed = _typed("New passphrase: ", "")
    if _typed("The same again: ", "").text != typed.text:
        raise unusable_passphrase("was typed in two different ways")
    return typed


def given_passphrase(file: Path | None) -> Passphrase | None:
    """From the file or the environment, out of which it is taken so that no process that is started inherits it."""
    if file is not None:
        if not file.is_file():
            raise NoSuchPath(str(file))
        check_private(file)
        with file.open("rb") as opened:
            return Passphrase(opened.read(_MOST).decode("utf-8", "replace").rstrip("\r\n"))
    text = os.environ.pop(VARIABLE, None)
    return None if text is None else Passphrase(text)


def _typed(question: str, of: str) -> Passphrase:
    if not sys.stdin.isatty():
        raise passphrase_needed(of) if of else no_new_passphrase()
    return Passphrase(getpass(question))
