"""`securetm budget forecast`: whether a model under a budget will be of use, before anything is spent. It reads no document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from securetm.cli.json_output import Json, print_json
from securetm.errors import BadSetting

if TYPE_CHECKING:
    from securetm.forecast import ForecastSetting

_WHERE = "securetm budget forecast"


def forecast(
    documents: Annotated[int, typer.Option(help="Documents of all parties, about.")],
    profile: Annotated[str, typer.Option(help="Privacy profile.")] = "dp-distributed",
    epsilon: Annotated[float | None, typer.Option(help="Budget; if not given, the profile's.")] = None,
    delta: Annotated[float | None, typer.Option(help="Its delta; if not given, the profile's.")] = None,
    persons: Annotated[int | None, typer.Option(help="Persons whose documents these are: the budget is theirs.")] = None,
    documents_per_person: Annotated[float | None, typer.Option(help="Or how many documents a person has.")] = None,
    parties: Annotated[int | None, typer.Option(help="How many parties; if not given, 5 or as many as it needs.")] = None,
    model: Annotated[str, typer.Option(help="Topic model.")] = "lda-vi",
    start: Annotated[str, typer.Option(help="Of lda-vi: at topics of word vectors (public), or plain.")] = "public",
    words: Annotated[int | None, typer.Option(help="Words on the list; 1,000 if not given, and the best is sought.")] = None,
    topics: Annotated[int | None, typer.Option(help="Topics; 20 if not given, and the best is sought.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds; 0: as many as the rule says.")] = 0,
    length: Annotated[float, typer.Option(help="Words of a document that are on the list, about.")] = 30.0,
    general_list: Annotated[
        bool, typer.Option("--general-list", help="The words are those of general language (--vocabulary english).")
    ] = False,
    json: Json = False,
) -> None:
    """Forecasts from public numbers whether a model under a budget will be of use."""
    from securetm.forecast import setting_under
    from securetm.forecast.best_settings import TOPICS_TRIED, WORDS_TRIED, choose_settings
    from securetm.reports.forecast_tables import show_forecast
    from securetm.reports.terminal import results

    each = _documents_per_person(documents, persons, documents_per_person)
    known = {"epsilon": epsilon, "delta": delta, "model": model, "start": start, "words": words, "topics": topics}
    known |= {"rounds": rounds, "length": length, "general_list": general_list, "documents_per_person": each}
    setting = setting_under(profile, documents, parties, **known)
    chosen = choose_settings(setting, () if words else WORDS_TRIED, () if topics else TOPICS_TRIED)
    show_forecast(chosen, results(json))
    if json:
        print_json({**_budget(setting), **chosen.record()})


def _documents_per_person(documents: int, persons: int | None, each: float | None) -> float:
    """How many documents a person has; 1 where the budget is the document's."""
    if persons is not None and each is not None:
        raise BadSetting(
            _WHERE, "--persons", str(persons), "cannot be given beside --documents-per-person, which says the same"
        )
    if persons is not None and not 1 <= persons <= documents:
        raise BadSetting(_WHERE, "--persons", str(persons), "must be at least 1 and at most the number of documents")
    return documents / persons if persons is not None else each or 1.0


def _budget(setting: ForecastSetting) -> dict[str, object]:
    unit = "person" if setting.documents_per_person > 1 else "document"
    return {"epsilon": setting.epsilon, "delta": setting.delta, "unit": unit}
