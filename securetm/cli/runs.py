"""`securetm runs`, `compare` and `sweep`: the runs that there are, several side by side, one for each value of a setting."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from securetm.cli.command import OptionsOf, Output, agreed_to, command
from securetm.cli.options import ARGUMENT, NAMES, RUNS, Settings
from securetm.cli.run import Carrying, PlanOptions, Wanted, agreed, chosen, declared, plan_settings, settings_of_options, train
from securetm.errors import BadSetting, Mistake, did_you_mean
from securetm.foreign_text import printable
from securetm.settings import require

_ORDERS: dict[str, Callable[[Any], Any]] = {  # what is not known stands last
    "begun": lambda run: run.begun,
    "name": lambda run: run.name,
    "model": lambda run: (run.model, run.begun),
    "profile": lambda run: (run.profile, run.begun),
    "perplexity": lambda run: (run.perplexity is None, run.perplexity),
    "ratio": lambda run: (run.ratio is None, run.ratio),
    "npmi": lambda run: (run.npmi is None, -(run.npmi or 0)),
    "epsilon": lambda run: (run.epsilon is None, run.epsilon),
    "size": lambda run: -run.size,
}
Place = Annotated[Path, "--in", "The folder that holds runs, or a party's home.", {"metavar": "FOLDER"}]


@command("--sort perplexity")
def runs(
    out: Output,
    names: Annotated[list[str] | None, ARGUMENT, "Only these: names or folders.", NAMES, {"metavar": "[RUN]..."}] = None,
    place: Place = RUNS,
    sort: Annotated[str, "begun, name, model, profile, ratio, perplexity, npmi, epsilon or size."] = "begun",
    delete: Annotated[bool, "--delete", "Delete these runs, after asking."] = False,
    cache: Annotated[bool, "--cache", "With --delete: the cache of documentation strings and embeddings, too."] = False,
    yes: Annotated[bool, "--yes", "Delete without asking."] = False,
) -> dict[str, Any]:
    """Lists the runs in a folder: when they began, what they are, how good, what they spent and their size.

    With --delete it deletes the runs that are named: what each one kept, and nothing else. A ledger that belongs to documents
    stays, and so does what a party has to remember of its answers.
    """
    from securetm.reports.runs import runs_table
    from securetm.runs.kept_runs import found_run, runs_in

    require(sort in _ORDERS, "", "--sort", sort, known=tuple(_ORDERS))
    require(delete or not (yes or cache), "", "--yes" if yes else "--cache", "given", "is of use with --delete only")
    require(not delete or bool(names or cache), "", "--delete", "given", "needs the names of runs, or --cache")
    if delete:
        return _delete(names or [], place, cache, yes, out)
    listed = [run for name in names for run in runs_in(found_run(name, place))] if names else runs_in(place)
    found = sorted(listed, key=_ORDERS[sort])
    out.results.print(runs_table(found) if found else f"No runs in {place}.")
    return {"folder": str(place), "runs": [asdict(run) for run in found]}


@command("demo")
def compare(
    out: Output,
    names: Annotated[list[str], ARGUMENT, "Finished runs: names or folders.", NAMES, {"metavar": "RUN..."}],
    place: Place = RUNS,
    paired: Annotated[
        bool, "--paired/--no-paired", "Also test over held-out documents whether the first run is as good."
    ] = True,
) -> dict[str, Any]:
    """Shows runs side by side: settings that differ, quality, privacy and cost.

    Runs whose settings are equal but for the seed are one column, with the mean over seeds and its interval. Where runs have
    the same held-out documents and words, a paired bootstrap over documents says whether the first run of a column predicts
    them better or worse than the first run of all by more than chance.
    """
    from securetm.reports.runs import comparison_tables, paired_sentences
    from securetm.runs.compare import paired_runs, side_by_side
    from securetm.runs.kept_runs import found_run

    paths = {name: found_run(name, place) for name in names}
    compared = side_by_side(paths)
    firsts = [group["runs"][0] for group in compared["groups"]]
    tested = paired_runs({name: paths[name] for name in firsts}) if paired and len(firsts) > 1 else []
    to = out.results
    to.print(*comparison_tables(compared), sep="\n")
    for sentence in paired_sentences(tested):
        to.print(sentence, markup=False)
    return {**compared, "paired": tested}


@command("--over topics=5,10 --rounds 20 --out sweep")
def sweep(
    out: Output,
    plan: Annotated[Path | None, ARGUMENT, "A plan in TOML; without one, the docstrings of installed packages."] = None,
    over: Annotated[
        str, "What differs: an option's name or section.name, and its values.", {"metavar": "SETTING=VALUES"}
    ] = "topics=5,10,20,50",
    given: Annotated[dict[str, Any] | None, OptionsOf(PlanOptions)] = None,
    public: Annotated[list[str] | None, "Why a file is public, as for run.", {"metavar": "INPUT=WHY"}] = None,
    set_: Settings = None,
    ledgers: Annotated[Path | None, "Folder of ledgers of the documents, for all runs; without it, one in --out."] = None,
    to: Annotated[Path, "--out", "Folder of the runs; must hold none of them yet.", {"metavar": "FOLDER"}] = RUNS / "sweep",
) -> dict[str, Any]:
    """Trains one run for each value of a setting, and shows the figures as a table and a curve, also in sweep.html.

    Under a budget all runs share it: what they spend together is said before the first, and no more is spent. Words that the
    parties find are paid for once.
    """
    from securetm.reports.runs import show_sweep, write_sweep
    from securetm.runs.compare import swept

    setting, values = _over(over)
    overrides = chosen(given or {}) | declared(public or []) | plan_settings(set_ or [])
    paths = [to / f"{setting.rpartition('.')[2].removeprefix('n_')}-{value}" for value in values]
    wanted = [
        agreed(plan, overrides | plan_settings([f"{setting}={value}"]), path, out)
        for value, path in zip(values, paths, strict=True)
    ]
    shared = _sharing(wanted, out)
    if shared:
        ledgers = ledgers or to / "ledgers"
    for place, (value, path) in enumerate(zip(values, paths, strict=True)):
        own = overrides | plan_settings([f"{setting}={value}"]) | (shared[place] if shared else {})
        if shared and place and wanted[place].agreement.plan.vocabulary.source == "joint":
            own |= {"vocabulary.source": "file", "vocabulary.file": str((paths[0] / "release" / "model.safetensors").resolve())}
        train(agreed(plan, own, path, out), Carrying(ledgers=ledgers, comparison=False), out, shown=False)
    found = {"over": setting, "values": list(values), **swept(paths)}
    show_sweep(found, out.results)
    write_sweep(found, to / "sweep.html")
    out.note(f"Written: {to / 'sweep.html'}")
    return found


def _over(text: str) -> tuple[str, tuple[str, ...]]:
    """The setting of a plan and its values, each once."""
    name, _, listed = text.partition("=")
    setting = settings_of_options().get(name.strip().replace("-", "_"), name.strip())
    values = tuple(dict.fromkeys(value.strip() for value in listed.split(",") if value.strip()))
    instead = "write a setting and two values or more, such as --over topics=10,20,50"
    if len(values) < 2 or not setting:
        raise BadSetting("securetm sweep", "--over", text, "must name a setting and two values at least", instead=instead)
    if "." not in setting and setting not in settings_of_options().values():
        meant = did_you_mean(setting, tuple(option.replace("_", "-") for option in settings_of_options()))
        problem = "names neither an option of `securetm run` nor section.name of a plan"
        raise BadSetting("securetm sweep", "--over", text, problem, instead=meant + instead)
    if setting == "profile" or setting.startswith(("privacy.", "corpus.", "federation.")):
        raise BadSetting("securetm sweep", "--over", text, "changes what is protected, not what is learned", instead=instead)
    return setting, values


def _sharing(wanted: Sequence[Wanted], out: Output) -> list[dict[str, Any]]:
    """The settings with which all runs together keep to one budget, which is said; none where no budget is spent."""
    from securetm.federation.budget.prices import epsilon_for_runs, noise_for_runs
    from securetm.plans.profiles import count_of_parties
    from securetm.plans.schema import hides_documents
    from securetm.reports.texts import sentence

    budget, runs = wanted[0].agreement.budget, len(wanted)
    if budget is None or not hides_documents(budget):
        out.note(sentence("run.sweep_spends", budget, runs))
        return []
    cases = []
    for one in wanted:
        plan = one.agreement.plan
        dealt = 0 if plan.corpus.partition == "column" else plan.corpus.parties
        parties = count_of_parties(one.agreement.profile, plan.federation.parties or dealt or None)
        cases.append((one.agreement, parties))
    epsilon = min(epsilon_for_runs(agreement, parties, runs) for agreement, parties in cases)
    out.note(sentence("run.sweep_spends", replace(budget, epsilon=epsilon), runs, budget.epsilon))
    found = []
    for agreement, parties in cases:
        noise = noise_for_runs(agreement.with_privacy(epsilon=epsilon), parties, runs)
        shared = {"privacy.epsilon": epsilon, "privacy.noise": noise, "training.rounds": agreement.plan.training.rounds}
        found.append(shared)
    return found


def _delete(names: Sequence[str], place: Path, cache: bool, yes: bool, out: Output) -> dict[str, Any]:
    """Deletes all of them, or none before the user agreed."""
    from securetm.runs.kept_runs import delete, delete_cache, found_run, kept_cache

    paths = list(dict.fromkeys(found_run(name, place) for name in names))
    cached = kept_cache() if cache else None
    wanted = [str(path) for path in (*paths, *([cached] if cached else []))]
    if wanted and not yes:
        listed = "".join(f"  {printable(name)}\n" for name in wanted) if sys.stdin.isatty() else ""
        typer.echo(listed, nl=False, err=True)
        if not agreed_to("Delete? Nothing brings it back."):
            raise Mistake(
                "nothing was deleted, because nobody agreed to it: {wanted}",
                hint="answer y at the terminal, or give --yes",
                wanted=tuple(wanted),
            )
    left = {str(path): list(files) for path in paths if (files := delete(path))}
    if cached:
        delete_cache(cached)
    for name in wanted:
        out.results.print(f"Deleted: {name}", markup=False)
    for name, kept in left.items():
        out.note(f"Left in {name}, as the run did not make it or has to remember it: {', '.join(kept)}")
    return {"deleted": wanted, "left": left}
