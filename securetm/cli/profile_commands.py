"""`securetm explain`, `check`, `threats` and `parts`: what there is to choose from, what it means, whether it is sound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from securetm.cli import completion
from securetm.cli.json_output import Json, print_json

Profile = Annotated[
    str, typer.Argument(help="A profile's name, or a file ending in .toml.", autocompletion=completion.profiles)
]


_USUAL_PARTIES = 5
Parties = Annotated[
    int | None, typer.Option(min=1, max=100_000, help="How many parties; if not given, 5 or as many as it needs.")
]


def explain(
    profiles: Annotated[
        list[str],
        typer.Argument(
            metavar="PROFILE...",
            help="A profile's name, or a file ending in .toml; several: side by side.",
            autocompletion=completion.profiles,
        ),
    ],
    parties: Parties = None,
    json: Json = False,
) -> None:
    """Says who sees what under a profile, what protects it, and what is spent."""
    _check_no_plan(profiles)
    if len(profiles) > 1:
        compare_profiles(profiles, parties, json)
        return
    from securetm.reports.profiles import explain as facts_of
    from securetm.reports.profiles import show_explanation
    from securetm.reports.terminal import results

    facts = facts_of(profiles[0], parties)
    show_explanation(facts, results(json))
    if json:
        print_json(facts)


def _check_no_plan(names: list[str]) -> None:
    """Refuses a plan where a profile is asked for, and names the profile that it takes."""
    from securetm.errors import BadSetting
    from securetm.settings import read_toml

    for name in names:
        path = Path(name)
        table = read_toml(path) if path.suffix == ".toml" and path.is_file() else {}
        if isinstance(profile := table.get("profile"), str):
            instead = f"`securetm explain {profile}` explains its profile; `securetm check {name}` checks the plan"
            raise BadSetting("", "PROFILE", name, "is a plan, and no profile", instead=instead)


def compare_profiles(
    profiles: Annotated[
        list[str],
        typer.Argument(
            metavar="PROFILE...", help="Two names or more, or files ending in .toml.", autocompletion=completion.profiles
        ),
    ],
    parties: Parties = None,
    json: Json = False,
) -> None:
    """Shows profiles side by side, one row a question: who sees what, unit and epsilon, quality, rounds, bytes.

    Rows whose answers differ are marked.
    """
    from securetm.reports.profiles import compare_profiles as facts_of
    from securetm.reports.profiles import show_comparison
    from securetm.reports.terminal import results

    facts = facts_of(profiles, parties)
    show_comparison(facts, results(json))
    if json:
        print_json(facts)


def check(
    profile: Annotated[
        str,
        typer.Argument(
            help="A profile's name, or a file ending in .toml: of a profile, or a plan.", autocompletion=completion.profiles
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Check it for this topic model too; a plan names its own.", autocompletion=completion.models),
    ] = None,
    threat_model: Annotated[
        str | None, typer.Option(help="Another threat model than the profile's own.", autocompletion=completion.threat_models)
    ] = None,
    parties: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="How many parties take part; if not given, as the plan says, or 5.")
    ] = None,
    json: Json = False,
) -> None:
    """Refuses an unsound choice and names every gap; exits 1 if there is one."""
    from securetm.federation.soundness import against, check_plan, plan_to_check
    from securetm.federation.soundness import check as gaps_of
    from securetm.reports.profiles import show_check
    from securetm.reports.terminal import results
    from securetm.settings import require

    plan = plan_to_check(profile)
    require(plan is None or model is None, "", "--model", model, "means nothing for a plan, which names its model")
    taking = parties or (plan.federation.parties if plan else 0) or _USUAL_PARTIES
    found = gaps_of(profile, model, threat_model, taking) if plan is None else check_plan(plan, threat_model, taking)
    said = ""
    if plan is not None and not found:
        from securetm.reports.choosing import too_few_documents, use_said

        found += too_few_documents(plan, taking)
        said = "" if found else use_said(plan, taking)
    facts = {**against(profile if plan is None else plan.profile, threat_model), "gaps": found, "forecast": said}
    to = results(json)
    show_check(facts, to)
    if said:
        to.print(said, markup=False)
    if json:
        print_json({**facts, "profile": profile, "sound": not facts["gaps"]})
    if facts["gaps"]:
        raise typer.Exit(1)


def threats(
    profile: Profile,
    every: Annotated[bool, typer.Option("--all", help="Every threat model, beside the profile's own.")] = False,
    parties: Annotated[
        int | None,
        typer.Option(min=2, max=100_000, help="How many parties take part; if not given, 5, or as many as it needs."),
    ] = None,
    evidence: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Another folder of kept results than audits/evidence.")
    ] = None,
    json: Json = False,
) -> None:
    """Says what is required against each adversary, who claims it, what tried it and with what result.

    Exits 1 if a claim that the profile makes was broken, if parties did not refuse what they should, or if its own threat
    model requires a claim that it does not make.
    """
    from securetm.reports.terminal import results
    from securetm.reports.threats import show_threats, threats_of

    facts = threats_of(profile, parties, every=every, folder=evidence)
    show_threats(facts, results(json))
    if json:
        print_json(facts)
    if facts["refuted_claims"] or facts["refusals"].get("not_held") or facts["threat_models"][0]["gaps"]:
        raise typer.Exit(1)


def parts(json: Json = False) -> None:
    """Lists models, mechanisms, aggregations, attacks and corpus readers by name, those of installed packages too.

    A name that several packages declare is listed once for each, and refused where it is used. The parts of other packages are
    imported, and those that cannot be used are named with the reason.
    """
    from securetm.reports.profiles import listed_parts, show_parts, unusable_parts
    from securetm.reports.terminal import results

    facts, unusable = listed_parts(), unusable_parts()
    show_parts(facts, unusable, results(json))
    if json:
        print_json({**facts, "unusable": unusable})
