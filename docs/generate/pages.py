"""All generated pages of the site, by their place in it. Each kind of page has a module of its own."""

from __future__ import annotations

from functools import cache

from docs.generate.error_pages import error_pages
from docs.generate.folder_pages import audit_pages, protocol_pages, threat_model_pages
from docs.generate.profile_pages import profile_pages
from docs.generate.python_page import python_page
from docs.generate.settings_page import party_page, settings_page


@cache
def generated_pages() -> dict[str, str]:
    """Text in Markdown, by path."""
    return {
        **protocol_pages(),
        **threat_model_pages(),
        **audit_pages(),
        **profile_pages(),
        **error_pages(),
        "reference/python.md": python_page(),
        "reference/settings.md": settings_page(),
        "reference/party-settings.md": party_page(),
    }
