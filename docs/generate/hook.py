"""The hook of mkdocs: it adds the generated pages, puts pictures into pages, and checks all links at the end."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from docs.generate.folder_pages import ASSETS  # noqa: E402
from docs.generate.pages import generated_pages  # noqa: E402 - found from the root, which is not on the path before
from docs.generate.site_links import faults  # noqa: E402
from docs.generate.source_links import RESULTS, linked_in_site, place_of  # noqa: E402

_FOLDERS = {"Profiles": "profiles", "Protocols": "protocols", "Threat models": "threat-models", "Audits": "audits"}
_PICTURE = re.compile(r"^<!-- picture: ([\w-]+)\.svg -->$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Names every generated page of a folder in the navigation, below the folder's index."""
    for section in config["nav"]:
        for title, folder in _FOLDERS.items():
            if title in section:
                inside = sorted(uri for uri in generated_pages() if uri.startswith(f"{folder}/") and Path(uri).stem != "index")
                section[title] = [f"{folder}/index.md", *({Path(uri).stem: uri} for uri in inside)]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds every generated page, and the results that pages link to."""
    for uri, text in generated_pages().items():
        files.append(File.generated(config, uri, content=text))
    for result in sorted((ROOT / RESULTS).iterdir()):
        files.append(File.generated(config, place_of(f"{RESULTS}/{result.name}", ""), content=result.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A picture stands in the page itself, so that it follows the page's light or dark scheme. Links lead into the site."""
    return linked_in_site(_PICTURE.sub(lambda found: _picture(found[1]), markdown), page.file.src_uri)


def on_post_build(config: Any) -> None:
    """Refuses a site with a link that leads nowhere, or with anything that the network would have to bring."""
    if found := faults(Path(config["site_dir"])):
        raise PluginError("\n".join(["the built site has faults:", *found]))


def _picture(name: str) -> str:
    """Where there is a narrow drawing as well, a small screen shows that one."""
    wide, narrow = (folder / f"{name}.svg" for folder in (ASSETS, ASSETS / "narrow"))
    if not narrow.is_file():
        return _figure("picture", wide)
    return f"{_figure('picture wide', wide)}\n\n{_figure('picture narrow', narrow)}"


def _figure(kind: str, file: Path) -> str:
    drawn = re.sub(r"<\?xml.*?\?>|<!--.*?-->", "", file.read_text("utf-8"), flags=re.DOTALL)
    drawn = " ".join(line.strip() for line in drawn.splitlines() if line.strip())  # a blank line would end the figure
    return f'<figure class="{kind}">\n{drawn}\n</figure>'
