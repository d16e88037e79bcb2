"""`securetm version`: which build this is, and whether its files are as they were published."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from securetm.cli.command import Output, command

_MOST = 20  # files that are named


@command("Say which build this is, and whether it was changed.", "--json")
def version(
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare every file with what was published; 1 if one differs.")
    ] = False,
    *,
    out: Output,
) -> dict[str, Any]:
    """Prints the version and the digest of all files that this package runs or reads.

    The same sources have the same digest, installed or in a checkout: compare it with the one that was published, and pin it in
    the roster (`securetm keys roster builds`).
    """
    from securetm.version import __version__, build_digest, published, sources

    found, known = sources(), published()
    digest = build_digest(found)
    out.results.print(f"securetm {__version__}\nbuild {digest}", markup=False, soft_wrap=True)
    facts: dict[str, Any] = {"version": __version__, "build": digest, "files": len(found)}
    if not verify:
        return facts
    changed = None if known is None else sorted(name for name in {*found, *known} if found.get(name) != known.get(name))
    if changed is None:
        said = "This is a checkout, which was not published: compare the digest with that of a release."
    elif changed:
        more = f" and {len(changed) - _MOST} more" if len(changed) > _MOST else ""
        said = f"{len(changed)} of {len(found)} files are not as they were published: {', '.join(changed[:_MOST])}{more}."
    else:
        said = f"All {len(found)} files are as they were published."
    out.results.print(said, markup=False, soft_wrap=True)
    out.exit_code = 0 if changed == [] else 1
    return facts | {"published": known is not None, "changed": changed}
