"""Trials that cannot be made or run."""

from __future__ import annotations

from securetm.errors import Misuse


class TrialExists(Misuse):
    """{path} is there already, and a trial would be mixed with what is in it"""

    path: str
    hint = "name a folder that is empty or not there yet: securetm init FOLDER"
