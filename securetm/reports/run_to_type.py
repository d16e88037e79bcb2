"""The command of a run with forecast settings, as somebody can type it. It says only what is to differ from what a run does."""

from __future__ import annotations

from securetm.forecast import ForecastSetting
from securetm.forecast.forecast_features import LDA_VI
from securetm.forecast.forecast_setting import BY_MOMENTS, BY_MOMENTS_ALONE, PLAIN, PUBLIC
from securetm.plans import MOMENTS, NO_VECTORS

_STARTS = {
    PUBLIC: ("--start public",),
    PLAIN: ("--start plain",),
    BY_MOMENTS: (f"--start {MOMENTS}",),
    BY_MOMENTS_ALONE: (f"--start {MOMENTS}", f"--vectors {NO_VECTORS}"),
}
LIST_OF_YOURS = "WORDS.txt"  # a public list, one word a line, in the place of a language


def run_to_type(
    setting: ForecastSetting, profile: str, *, parties: int, language: str, persons: int = 0, length: float = 0.0
) -> str:
    """The command of a simulation with these settings; `persons` where each has the budget, `length` where it is known."""
    told = {"documents": setting.documents, "persons": persons, "document_length": length}
    numbers = {"federation.parties": parties, "privacy.delta": setting.delta, "privacy.noise": setting.noise}
    parts = (
        f"securetm run --corpus FILE --profile {profile}",
        *(("--person COLUMN",) if persons else ()),
        f"--model {setting.model}",
        *(_STARTS[setting.start] if setting.model == LDA_VI else ()),
        f"--vocabulary {language or LIST_OF_YOURS}",
        *((f"--set vocabulary.max_words={setting.words}",) if language else ()),
        f"--topics {setting.topics} --rounds {setting.rounds} --epsilon {setting.epsilon:g}",
        *(f"--set training.{name}={value:.12g}" for name, value in told.items() if value),
        *(f"--set {name}={value:g}" for name, value in numbers.items() if value),
        "--ledgers FOLDER",
    )
    return " ".join(parts)
