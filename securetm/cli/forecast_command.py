"""`securetm budget forecast`: whether a model under a budget will be of use, before anything is spent. It reads no document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli import completion
from securetm.cli.budget_people import EachPerson, Persons, Unit, people_of
from securetm.cli.json_output import Json, print_json

if TYPE_CHECKING:
    from securetm.accounting.calculator.persons import People
    from securetm.plans.forecast import ForecastChoice, ForecastSetting

_ENGLISH = "english"
_OPTIONS = {"length": "--document-length"}  # whose names differ from those of the forecast's settings


def forecast(
    documents: Annotated[int, typer.Option(help="Documents of all parties, about.")],
    profile: Annotated[str, typer.Option(help="Privacy profile.", autocompletion=completion.profiles)] = "dp-distributed",
    epsilon: Annotated[float | None, typer.Option(help="Budget; if not given, the profile's.")] = None,
    delta: Annotated[float | None, typer.Option(help="Its delta; if not given, the profile's.")] = None,
    unit: Unit = "",
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    parties: Annotated[int | None, typer.Option(help="How many parties; if not given, 5 or as many as it needs.")] = None,
    model: Annotated[str, typer.Option(help="Topic model.", autocompletion=completion.models)] = "lda-vi",
    start: Annotated[
        str | None, typer.Option(help="Of lda-vi: public, plain or moments; if not given, as a run would begin.")
    ] = None,
    words: Annotated[
        int | None, typer.Option(help="Words on the list; if not given, as a run would list, and the best is sought.")
    ] = None,
    topics: Annotated[int | None, typer.Option(help="Topics; 20 if not given, and the best is sought.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds; 0: as many as the rule says.")] = 0,
    length: Annotated[
        float | None,
        typer.Option("--document-length", "--length", help="Words of a document on the list, about; if not said, any length."),
    ] = None,
    vocabulary: Annotated[
        str, typer.Option(help="A language, such as english: the words are those of its public list, which fit worse.")
    ] = "",
    general_list: Annotated[bool, typer.Option("--general-list", help="The same as --vocabulary english.")] = False,
    json: Json = False,
) -> None:
    """Forecasts from public numbers whether a model under a budget will be of use.

    Where model, start, words, topics and rounds are left open, it speaks of the best ones, and prints a run with these.
    """
    from securetm.accounting.calculator.option_checks import check, refused
    from securetm.cli.budget_profile import words_of_a_run
    from securetm.corpus.public_words import language_code
    from securetm.models import MODELS
    from securetm.plans.forecast import LDA_VI, LENGTHS, TOPICS_TRIED, WORDS_TRIED, choose_settings, setting_under
    from securetm.reports.forecast import show_forecast
    from securetm.reports.terminal import results

    for option, value in {"--documents": documents, "--epsilon": epsilon, "--parties": parties}.items():
        check(option, value)
    people = people_of(unit, documents, documents_per_person, persons, None, None)
    MODELS.find(model)  # which of them were tried is the forecast's to say
    language = vocabulary or (_ENGLISH if general_list else "")
    if language and language_code(language) is None:
        raise refused("--vocabulary", language, "is no language of which there is a list", "give english, german, or de")
    vectors = _vectors_here()
    known = {"epsilon": epsilon, "delta": delta, "model": model, "start": start, "topics": topics}
    known |= {"words": words_of_a_run(profile, people, parties, epsilon, delta) if words is None else words, "rounds": rounds}
    known |= {"length": length, "general_list": bool(language)}
    with _named_as_options():
        each = documents / (people.units or 1)
        setting = setting_under(profile, documents, parties, **known, documents_per_person=each, vectors=vectors)
    lengths = LENGTHS if length is None else ()
    sought = (() if words else WORDS_TRIED, () if topics else TOPICS_TRIED)
    settings_open = not (words or topics or rounds or start) and model == LDA_VI
    chosen = choose_settings(setting, *sought, lengths, vectors=vectors, open_to_best=settings_open)
    told = _told(chosen, profile, people, parties, language, length or 0.0)
    show_forecast(chosen, results(json), told["warnings"], told["run"])
    if json:
        print_json({**_budget(setting, people), **chosen.record(), **told})


def _vectors_here() -> bool:
    """Whether word vectors are installed, which a public start reads."""
    from securetm.corpus.word_vectors import installed_vectors

    return installed_vectors() is not None


def _told(
    chosen: ForecastChoice, profile: str, people: People, parties: int | None, language: str, length: float
) -> dict[str, Any]:
    """Warnings, and the command of a run with the best settings, or those asked about where there are none."""
    from securetm.accounting.calculator.persons import PERSON
    from securetm.accounting.delta_limits import sentence_delta
    from securetm.plans.profiles import count_of_parties, read_profile
    from securetm.reports.forecast import run_to_type

    setting = (chosen.best or chosen.asked).setting
    warning = sentence_delta(setting.delta, people.units, people.protected)
    persons = (people.units or 0) if people.protected == PERSON else 0
    taking = count_of_parties(read_profile(profile), parties)
    run = run_to_type(setting, profile, parties=taking, language=language, persons=persons, length=length)
    return {"warnings": [warning] if warning else [], "run": run}


@contextmanager
def _named_as_options() -> Iterator[None]:
    """Names the option of a setting that is refused."""
    from securetm.accounting.calculator.option_checks import refused
    from securetm.errors import BadSetting

    try:
        yield
    except BadSetting as mistake:
        option = _OPTIONS.get(mistake.name, f"--{mistake.name.replace('_', '-')}")
        raise refused(option, mistake.value, mistake.problem, mistake.instead, mistake.known) from mistake


def _budget(setting: ForecastSetting, people: People) -> dict[str, Any]:
    return {"epsilon": setting.epsilon, "delta": setting.delta, "unit": people.protected}
