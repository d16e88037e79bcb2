"""`securetm budget forecast`: whether a model under a budget will be of use, before anything is spent. It reads no document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli.budget_people import EachPerson, Persons, Unit, people_of
from securetm.cli.json_output import Json, print_json

if TYPE_CHECKING:
    from securetm.accounting.calculator.persons import People
    from securetm.forecast import ForecastSetting

_OPTIONS = {"length": "--document-length"}  # whose names differ from those of the forecast's settings


def forecast(
    documents: Annotated[int, typer.Option(help="Documents of all parties, about.")],
    profile: Annotated[str, typer.Option(help="Privacy profile.")] = "dp-distributed",
    epsilon: Annotated[float | None, typer.Option(help="Budget; if not given, the profile's.")] = None,
    delta: Annotated[float | None, typer.Option(help="Its delta; if not given, the profile's.")] = None,
    unit: Unit = "",
    documents_per_person: EachPerson = None,
    persons: Persons = None,
    parties: Annotated[int | None, typer.Option(help="How many parties; if not given, 5 or as many as it needs.")] = None,
    model: Annotated[str, typer.Option(help="Topic model.")] = "lda-vi",
    start: Annotated[
        str | None, typer.Option(help="Of lda-vi: public, plain or moments; if not given, as a run would begin.")
    ] = None,
    words: Annotated[int | None, typer.Option(help="Words on the list; 1,000 if not given, and the best is sought.")] = None,
    topics: Annotated[int | None, typer.Option(help="Topics; 20 if not given, and the best is sought.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds; 0: as many as the rule says.")] = 0,
    length: Annotated[
        float, typer.Option("--document-length", "--length", help="Words of a document that are on the list, about.")
    ] = 30.0,
    general_list: Annotated[
        bool, typer.Option("--general-list", help="The words are those of general language (--vocabulary english).")
    ] = False,
    json: Json = False,
) -> None:
    """Forecasts from public numbers whether a model under a budget will be of use."""
    from securetm.accounting.calculator.option_checks import check
    from securetm.forecast import setting_under
    from securetm.forecast.best_settings import TOPICS_TRIED, WORDS_TRIED, choose_settings
    from securetm.models import MODELS
    from securetm.reports.forecast_tables import show_forecast
    from securetm.reports.terminal import results

    for option, value in {"--documents": documents, "--epsilon": epsilon, "--parties": parties}.items():
        check(option, value)
    people = people_of(unit, documents, documents_per_person, persons, None, None)
    MODELS.find(model)  # which of them were tried is the forecast's to say
    known = {"epsilon": epsilon, "delta": delta, "model": model, "start": start, "words": words, "topics": topics}
    known |= {"rounds": rounds, "length": length, "general_list": general_list}
    with _named_as_options():
        setting = setting_under(profile, documents, parties, **known, documents_per_person=documents / (people.units or 1))
    chosen = choose_settings(setting, () if words else WORDS_TRIED, () if topics else TOPICS_TRIED)
    show_forecast(chosen, results(json))
    if json:
        print_json({**_budget(setting, people), **chosen.record()})


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
