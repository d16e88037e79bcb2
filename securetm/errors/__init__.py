"""The root of every way to fail, and what several layers raise. What one package alone raises lies in that package."""

from securetm.errors.every_error import error_classes
from securetm.errors.message_errors import (
    BadVector,
    CohortTooSmall,
    Duplicate,
    Malformed,
    NotInCohort,
    TooFewParties,
    UnknownRound,
    WrongSession,
)
from securetm.errors.path_errors import (
    BadCorpus,
    CannotWrite,
    NoSuchPath,
    OpenToOthers,
    OwnedByAnother,
    SystemRefused,
    Unreadable,
)
from securetm.errors.setting_errors import (
    BadSetting,
    BrokenPromise,
    CountsNotWhole,
    NoPersons,
    NotFound,
    SplitOwner,
    UnknownSetting,
    UnreadableToml,
    UnsafeEntropy,
)
from securetm.errors.similar_names import did_you_mean
from securetm.errors.tree import FAILURE, MISUSE, Misuse, Refused, SecuretmError, Unsound

__all__ = [
    "FAILURE",
    "MISUSE",
    "BadCorpus",
    "BadSetting",
    "BadVector",
    "BrokenPromise",
    "CannotWrite",
    "CohortTooSmall",
    "CountsNotWhole",
    "Duplicate",
    "Malformed",
    "Misuse",
    "NoPersons",
    "NoSuchPath",
    "NotFound",
    "NotInCohort",
    "OpenToOthers",
    "OwnedByAnother",
    "Refused",
    "SecuretmError",
    "SplitOwner",
    "SystemRefused",
    "TooFewParties",
    "UnknownRound",
    "UnknownSetting",
    "Unreadable",
    "UnreadableToml",
    "UnsafeEntropy",
    "Unsound",
    "WrongSession",
    "did_you_mean",
    "error_classes",
]
