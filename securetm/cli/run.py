"""`securetm run`: trains a federation on this machine, or continues one that was interrupted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from securetm.cli.command import OptionsOf, Output, command
from securetm.cli.options import ARGUMENT, COLUMN, FOLDERS, MODELS, PROFILES, RUNS, Settings
from securetm.data_classes import dataclass, replace
from securetm.errors import BadSetting, Failed
from securetm.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from securetm.contracts import Engine
    from securetm.federation.folder import RunFolder
    from securetm.plans.agreement import Agreement
    from securetm.plans.schema import Plan
    from securetm.stages import Stages

LONG_SENTENCE = 50  # words
_NOISE_FOLLOWS_FROM = ("privacy.epsilon", "privacy.delta", "training.rounds")  # that of an earlier run was for its own


@dataclass(frozen=True)
class Sets:
    """The setting of a plan that an option gives."""

    setting: str


@dataclass(frozen=True)
class PlanOptions:
    profile: Annotated[str, "Privacy profile; see `securetm explain`.", PROFILES, Sets("profile")]
    model: Annotated[str, "Topic model.", MODELS, Sets("model.name")]
    topics: Annotated[int, "Number of topics.", Sets("model.n_topics")]
    rounds: Annotated[int, "Most training rounds.", Sets("training.rounds")]
    epochs: Annotated[float, "Passes over the training documents, where their number is public.", Sets("training.epochs")]
    stop: Annotated[str, "End by: rounds, weights or held_out.", Sets("training.stop")]
    local_epochs: Annotated[int, "Epochs at each party per round; 0: a gradient per batch.", Sets("model.local_epochs")]
    seed: Annotated[int, "Public seed of batches and model noise.", Sets("seed")]
    corpus: Annotated[str, "Documents: a file, a folder of .txt, or `docstrings`.", Sets("corpus.source")]
    text: Annotated[str, "The column of the text, unless it is called so.", COLUMN, Sets("corpus.text")]
    label: Annotated[str, "The column of the label.", COLUMN, Sets("corpus.label")]
    party: Annotated[str, "The column of who holds the document.", COLUMN, Sets("corpus.party")]
    date: Annotated[str, "The column of the date.", COLUMN, Sets("corpus.date")]
    person: Annotated[str, "The column of whose document it is; a budget then protects persons.", COLUMN, Sets("corpus.person")]
    embedding: Annotated[str, "The column of the embedding.", COLUMN, Sets("corpus.embedding")]
    id_: Annotated[str, "--id", "The column of the document's own id.", COLUMN, Sets("corpus.id")]
    partition: Annotated[str, "Who holds what: column, equal or dirichlet.", Sets("corpus.partition")]
    parties: Annotated[int, "Number of parties, where documents are dealt out.", Sets("corpus.parties")]
    vocabulary: Annotated[
        str,
        "Public words: a language, such as english, or a file, one a line; english+private adds the parties'.",
        Sets("vocabulary.file"),
    ]
    decoder: Annotated[str, "Of prodlda: full, or embedded, through frozen public word vectors.", Sets("model.decoder")]
    start: Annotated[
        str,
        "Begin at topics of word vectors (public), of pairs of words asked for first (moments), or plain.",
        Sets("training.start"),
    ]
    vectors: Annotated[
        str,
        "Vectors of a public start: glove, minilm, a file, or a sentence model's folder.",
        {"metavar": "SOURCE"},
        Sets("training.vectors"),
    ]
    epsilon: Annotated[float, "Privacy budget of the run; the noise is made to last all rounds.", Sets("privacy.epsilon")]


@dataclass(frozen=True)
class Carrying:
    """How a run is carried out, which no plan says."""

    ledgers: Annotated[Path | None, "Folder of ledgers of the documents, for all runs; without it, a trial's budget."] = None
    engine: Annotated[str | None, "What computes the parties' answers, one party after the other: in-process, pool or ray."] = (
        None
    )
    workers: Annotated[
        int | None, "Worker processes: of the engine, or without one for the parties.", {"min": 1, "max": 256}
    ] = None
    record: Annotated[bool, "--record", "Keep the content of every message, for an audit."] = False
    comparison: Annotated[bool, "--comparison/--no-comparison", "Also train each party alone, to compare."] = True

    def computing(self) -> tuple[Engine, int]:
        """The engine, and how many processes the parties are spread over: where there is an engine, `workers` are its own."""
        from securetm.engines import IN_PROCESS, EngineChoice

        own = self.engine not in (None, IN_PROCESS)
        table = {"kind": self.engine or IN_PROCESS, **({"workers": self.workers} if own and self.workers else {})}
        return EngineChoice.of(table).make(), 1 if own else self.workers or 1


@command("--rounds 20 --topics 5")
def run(
    to: Output,
    plan: Annotated[Path | None, ARGUMENT, "A plan in TOML; without one, the docstrings of installed packages."] = None,
    given: Annotated[dict[str, Any] | None, OptionsOf(PlanOptions)] = None,
    public: Annotated[
        list[str] | None,
        "Why a file without an origin is public: vocabulary, continue_from, stop_words, vectors, embeddings.",
        {"metavar": "INPUT=WHY"},
    ] = None,
    set_: Settings = None,
    out: Annotated[Path | None, "Folder of the run; must not hold one yet."] = None,
    resume: Annotated[Path | None, "Go on with the run in this folder, which was interrupted.", FOLDERS] = None,
    continue_: Annotated[
        Path | None,
        "--continue",
        "Train on from the model of this finished run: topics keep their numbers and labels.",
        FOLDERS,
    ] = None,
    how: Carrying = Carrying(),
) -> None:
    """Trains one topic model over the documents of several parties, on this machine."""
    overrides = chosen(given or {}) | declared(public or []) | plan_settings(set_ or [])
    if continue_ is not None:
        overrides = _continued(continue_, overrides, has_plan=plan is not None)
    if resume is not None and (plan is not None or overrides or out or how.ledgers or how.record):
        beside = str(plan or out or how.ledgers or ", ".join(overrides) or "--record")
        raise BadSetting("securetm run", "--resume", str(resume), f"goes on with its own plan, so {beside} cannot be given too")
    with to.busy("getting ready"):  # libraries are loaded and the plan is checked, which takes seconds
        from securetm.federation.folder import PLAN, RUN, reopen

        if resume is not None and not (resume / RUN).is_file() and (resume / PLAN).is_file():
            plan, out, resume = resume / PLAN, resume, None  # it was stopped while its documents were read: it begins again
        what = reopen(resume) if resume is not None else agreed(plan, overrides, out, to)
    result = train(what, how, to)
    to.document(result)
    if not result["rounds"]:
        raise Failed(
            "no round was trained, so the model in {path} knows nothing: the budget for these documents is spent or too small",
            hint="`securetm budget ledger {path}` shows what was spent (with --ledgers, by all runs), `securetm budget profile "
            "NAME` what one round costs",
            path=result["directory"],
        )
    paid = any(spent["epsilon"] is not None for spent in result["spent"])
    worse = (result.get("baseline") or {}).get("worse_than_uniform")
    to.exit_code = 1 if paid and worse else 0  # a budget was spent on less than a guess


def _continued(run: Path, overrides: dict[str, Any], *, has_plan: bool) -> dict[str, Any]:
    """The settings with which a run goes on from the model of another: as that one had them, unless a plan says others."""
    from securetm.plans.recommend import settings_to_go_on
    from securetm.runs.finished import FinishedRun, model_of

    plan = FinishedRun.open(run).plan
    usual = settings_to_go_on(plan, own_corpus=any(name.startswith("corpus.") for name in overrides))
    if plan.privacy.epsilon and not overrides.keys().isdisjoint(_NOISE_FOLLOWS_FROM):
        usual = {name: value for name, value in usual.items() if name not in ("privacy.noise", "privacy.words")}
    if overrides.get("model.name", plan.model.name) != plan.model.name:
        usual = {name: value for name, value in usual.items() if not name.startswith("model.")}
    return {**({} if has_plan else usual), **overrides, "training.continue_from": str(model_of(run).resolve())}


def settings_of_options() -> dict[str, str]:
    """The settings of a plan that have an option, by the option's parameter."""
    kinds = get_type_hints(PlanOptions, include_extras=True)
    return {name: kind.__metadata__[-1].setting for name, kind in kinds.items()}


def option_for(where: str, setting: str) -> str:
    """The option that gives this setting of a plan; empty where none does.

    `where` is a section such as "[training]", the class of a model such as "LDA", or any other place, such as another file.
    """
    section = f"{where[1:].partition(']')[0]}." if where.startswith("[") else "model." if where.isidentifier() else ""
    return _option(section + setting)


def _option(setting: str) -> str:
    option = next((name for name, full in settings_of_options().items() if full == setting), "")
    return option and f"--{option.replace('_', '-')}"


def run_to_type(profile: str, settings: Mapping[str, Any], *, by_person: bool) -> str:
    """The command of a simulation, under ledgers, with these settings of a plan; what is 0 or empty is left out."""
    parts = [f"securetm run --corpus FILE --profile {profile}", *(["--person COLUMN"] if by_person else [])]
    for name, value in settings.items():
        if value:
            told = f"{value:.12g}" if isinstance(value, float) else str(value)
            parts.append(f"{option} {told}" if (option := _option(name)) else f"--set {name}={told}")
    return " ".join([*parts, "--ledgers FOLDER"])


def chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a plan that were given as options."""
    found = {setting: given[name] for name, setting in settings_of_options().items() if name in given}
    listed = found.get("vocabulary.file")
    return found | ({"vocabulary.source": "joint" if str(listed).endswith("+private") else "file"} if listed else {})


def train(what: RunFolder | Wanted, how: Carrying, out: Output, *, shown: bool = True) -> dict[str, Any]:
    from securetm.federation.simulation.simulation import execute
    from securetm.reports.runs import show_run
    from securetm.reports.statement.write import write_release

    kind, workers = how.computing()
    with out.bars() as bars:
        folder = _begun(what, how, bars, out.screen) if isinstance(what, Wanted) else what
        with closing(kind) as engine:
            result = execute(folder, bars, workers=workers, comparison=how.comparison, engine=engine)
    if result["rounds"]:
        write_release(folder.path)
    if shown:
        show_run(result, folder.agreement.profile.danger, out.results)
    _say_who_took_no_part(result, out.screen)
    return result


def _begun(wanted: Wanted, how: Carrying, bars: Stages, to: Console) -> RunFolder:
    """Reads the documents, and begins the run in its folder, which holds the plan from the first second."""
    from securetm.corpus.partitions import left_out, without_any
    from securetm.federation.budget.forecast import (
        check_words,
        expected_in_words,
        expected_words,
        forecast_of,
        in_words,
        why_no_forecast,
    )
    from securetm.federation.budget.prices import check_affords_a_round
    from securetm.federation.document_minimum import delta_said, units_of
    from securetm.federation.folder import announced, begin
    from securetm.federation.soundness import check_floor
    from securetm.federation.sources import corpora_of, words_of_a_sentence
    from securetm.plans.recommend import Recommendation
    from securetm.plans.schema import hides_documents
    from securetm.reports.evaluation import left_out_in_words
    from securetm.reports.forecast import before_a_run

    agreement, plan = wanted.agreement, wanted.agreement.plan
    alone = how.ledgers is None and not how.record  # a plan does not say where ledgers lie, so nobody could go on with it
    with announced(wanted.path, Recommendation(plan, wanted.why)) if alone else nullcontext():
        corpora = corpora_of(plan, bars)
        _check_as_many(plan, len(corpora))
        unlisted = {} if agreement.words is None else without_any(corpora, agreement.words)
        for said in left_out_in_words(left_out(corpora), unlisted):
            to.print(said, markup=False)
        by_sentence = plan.model.name.startswith("sentence-lda") and not plan.model.settings.get("longest")
        if by_sentence and (words := words_of_a_sentence(corpora)) > LONG_SENTENCE:
            to.print(
                f"[yellow]Half of all sentences have {words:.0f} words or more, and each gets one topic: is the text without "
                "full stops? --set model.longest=10 cuts sentences at so many words.[/yellow]"
            )
        documents = sum(map(len, corpora.values()))
        expected = expected_words(plan.vocabulary, plan.tokeniser, documents, on_list=plan.training.document_length)
        if expected is not None:
            to.print(expected_in_words(expected, plan.vocabulary.file), markup=False)
        check_floor(agreement, len(corpora))
        if how.ledgers is None:  # else the ledgers of the documents say what may be spent
            check_affords_a_round(agreement, len(corpora))
        if (needed := check_words(agreement, corpora)) is not None:
            to.print(f"Note: {in_words(needed)}.")
        folder = begin(wanted.path, plan, corpora, with_content=how.record, ledgers=how.ledgers, why=wanted.why)
    if hides_documents(folder.agreement.budget):
        told = forecast_of(folder.agreement, len(corpora))
        to.print(before_a_run(told, why_no_forecast(folder.agreement), plan.language), markup=False)
    if large := delta_said(folder.agreement, sum(units_of(one, folder.agreement.unit) for one in corpora.values())):
        to.print(f"[yellow]Note: {large}[/yellow]")
    return folder


@dataclass(frozen=True)
class Wanted:
    agreement: Agreement
    path: Path
    why: Mapping[str, str]


def agreed(plan: Path | None, overrides: dict[str, Any], out: Path | None, to: Output) -> Wanted:
    """The agreement and the folder of a new run, both checked before documents are trained on, and why settings were chosen.

    Where nobody named a language, stop words are those of the documents'; under a budget if each third of them shows it.
    """
    from securetm.corpus.readers import is_corpus
    from securetm.federation.folder import check_free
    from securetm.federation.soundness import check_answerable
    from securetm.federation.sources import columns_of, foreign_language, language_said, language_taken
    from securetm.plans.agreement import agree
    from securetm.plans.profiles import ProfileFile
    from securetm.plans.recommend import recommended_for

    if plan is not None and is_corpus(plan):
        instead = f"give documents with --corpus {plan}; a plan is a file of settings that ends in .toml"
        raise BadSetting("securetm run", "PLAN", str(plan), "holds documents and is no plan", instead=instead)
    found = recommended_for(plan, overrides)
    chosen = found.plan
    if chosen.corpus.partition != "column":
        _check_as_many(chosen, chosen.corpus.parties)
    path = out or RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}-{chosen.model.name}-{Path(chosen.profile).stem}"
    check_free(path)
    seen = foreign_language(chosen, chosen.corpus.source, columns_of(chosen.corpus))
    if seen.language is not None:
        budget = chosen.profile_in(ProfileFile.read(chosen.profile)).budget
        is_open = found.language_is_open and (seen.surely or budget is None)
        to.note(language_said(seen.language, chosen, taken=is_open))
        if is_open:
            found = recommended_for(plan, {**overrides, "tokeniser.stop_words": seen.language})
            found = replace(found, why={**found.why, "tokeniser.stop_words": language_taken(seen.language)})
    agreement = agree(chosen := found.plan)
    check_answerable(agreement, agreement.profile.minimum_parties)
    return Wanted(agreement, path, found.why)


def _check_as_many(plan: Plan, parties: int) -> None:
    """Refuses documents of fewer or more parties than the plan counts with: its noise and its forecast would be of others."""
    told = plan.federation.parties
    if told and told != parties:
        by_column = plan.corpus.partition == "column"
        dealt = "the column of the corpus names" if by_column else "the documents are dealt out to"
        problem = f"contradicts the documents: {dealt} {counted(parties, 'party', 'parties')}"
        instead = (
            f"take --set federation.parties={parties}, or deal the documents out to {told} (--partition equal --parties {told})"
        )
        raise BadSetting("[federation]", "parties", str(told), problem, instead=instead)


def _say_who_took_no_part(result: Mapping[str, Any], to: Console) -> None:
    """Reports parties whose documents lack agreed words; such documents are in no sum."""
    from rich.markup import escape

    for name, documents in result["documents"].items():
        whole, read = documents["all"], documents["with_agreed_words"]
        if read == 0:
            none = "none of its documents has an agreed word, so it contributed nothing."
            to.print(f"[bold yellow]{escape(name)}[/bold yellow]: {none}")
        elif 2 * read < whole:
            to.print(f"[yellow]{escape(name)}[/yellow]: only {read:,} of its {whole:,} documents have an agreed word.")
    held = result["documents"].values()
    few = [without for one in held if 0 < 2 * (without := one["all"] - one["with_agreed_words"]) <= one["all"]]
    if few:
        lacked = counted(sum(few), "document without an agreed word", "documents without an agreed word")
        to.print(f"{counted(len(few), 'party', 'parties')} left out {lacked}: at most half of its own each.")


def plan_settings(pairs: list[str]) -> dict[str, str]:
    """The settings of a plan that were given with --set."""
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            instead = "write section.name=value, such as --set training.rounds=20"
            raise BadSetting("", "--set", pair, "must name a setting and its value", instead=instead)
    from securetm.settings import CommandLineText

    return {pair.partition("=")[0]: CommandLineText(pair.partition("=")[2]) for pair in pairs}


def declared(pairs: list[str]) -> dict[str, str]:
    """The reasons of [origins] that were given with --public."""
    for pair in pairs:
        if not all(part.strip() for part in pair.partition("=")):
            instead = 'write the input and the reason, such as --public vocabulary="the glossary that the ministry published"'
            raise BadSetting("", "--public", pair, "must name an input and say why it is public", instead=instead)
    return {f"origins.{pair.partition('=')[0].strip()}": pair.partition("=")[2].strip() for pair in pairs}
