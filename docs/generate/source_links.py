"""Links from pages to files of the tree, and the pages of the site that are made of these files.

A page in `docs/` links to what lies in a clone: a profile's file, a protocol's text, the module of an error. On the site the
link leads to the page that is made of it.
"""

from __future__ import annotations

import re
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath

_LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_ERROR = re.compile(r"`(\w+)`")
_FILES = {
    "securetm/errors.py": "reference/errors.md",
    "securetm/plans/schema.py": "reference/settings.md",
    "securetm/models/__init__.py": "reference/settings.md#model-by-model",
    "securetm/plans/party_file.py": "reference/party-settings.md",
    "audits/evidence/README.md": "audits/evidence.md",
}
RESULTS = "lab/results/papers"  # is in the site as it is
_FOLDERS = {"protocols": "protocols", "threat_models": "threat-models", "audits": "audits", "protocols/profiles": "profiles"}


def linked_in_site(markdown: str, page: str) -> str:
    """The text of a page in `docs/`, whose links to files of the tree lead to pages of the site."""

    def changed(found: re.Match[str]) -> str:
        path = normpath(PurePosixPath("docs") / PurePosixPath(page).parent / found["to"])
        place = "" if path.startswith(("docs", "..")) else place_of(path, found["text"])
        if not place:
            return found[0]
        to = relpath(place, PurePosixPath(page).parent)
        return f"[{found['text']}]({to}{found['anchor'] or ''})"

    return _LINK.sub(changed, markdown)


def place_of(path: str, text: str) -> str:
    """The page of the site that is made of a file or folder of the tree; nothing where there is none."""
    named = _ERROR.fullmatch(text) if path.endswith(".py") else None
    if path in _FILES and not (named and path == "securetm/errors.py"):
        return _FILES[path]
    if path in _FOLDERS:
        return f"{_FOLDERS[path]}/index.md"
    if named:
        return f"reference/errors/{named[1]}.md"
    folder, name = str(Path(path).parent), Path(path)
    if folder == RESULTS:
        return f"results/{name.name}"
    if folder not in _FOLDERS or name.suffix not in (".md", ".toml"):
        return ""
    return f"{_FOLDERS[folder]}/{'index' if name.name == 'README.md' else name.stem}.md"
