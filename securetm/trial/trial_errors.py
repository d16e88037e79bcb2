"""Trials that cannot be made or run."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class TrialExists(Misuse):
    """{path} is there already, and a trial would be mixed with what is in it"""

    path: str
    hint = "name a folder that is empty or not there yet: securetm init FOLDER"


class MemberEnded(SecuretmError):
    """the process of {name} ended with exit code {code}; its last words were: {said}"""

    name: str
    code: int
    said: str
    path: str
    hint = "all of it is in {path}; the other processes were ended"


class ModelsDiffer(SecuretmError):
    """the model of {name} is not that of the others"""

    name: str
    path: str
    hint = "this is a fault of securetm: please report it, with the folder {path}"
