"""What is no word of a text: entities and tags of HTML and of forums, links, and where it is asked for hashtags and names.

Each text is cleaned by itself, in time that grows with its length.
"""

from __future__ import annotations

import html
import re

_BLOCKS = "p|div|li|ul|ol|dl|dt|dd|h[1-6]|tr|td|th|table|tbody|thead|blockquote|pre|section|article|header|footer|hr|br"
_INLINE = (
    "a|abbr|b|big|body|button|center|cite|code|col|del|em|embed|figcaption|figure|font|form|head|html|i|iframe|img|input|ins|"
    "kbd|label|link|main|mark|meta|nav|object|option|q|s|samp|script|select|small|source|span|strike|strong|style|sub|sup|"
    "svg|textarea|time|title|tt|u|var|video|audio"
)
_FORUM = "quote|fullquote|url|img|b|i|u|s|code|size|color|list|spoiler|youtube|media|email|font|center"
_ATTRIBUTES = r"(?=[\s/>])[^<>]{0,2000}"  # a bound, so that no text takes long
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCKS}){_ATTRIBUTES}>", re.IGNORECASE)
_TAG = re.compile(
    rf"</?(?:{_INLINE}){_ATTRIBUTES}>|<!--[^<>]{{0,2000}}>|<!doctype[^<>]{{0,200}}>|\[/?(?:{_FORUM})(?:[=\s][^\[\]]{{0,500}})?\]",
    re.IGNORECASE,
)
_LINK = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_HASHTAG, _NAME = re.compile(r"(?<![\w&/])#\w[\w-]*"), re.compile(r"(?<![\w./])@\w[\w.-]*")
_PARAGRAPH = "\n\n"  # ends a sentence


def without_markup(text: str) -> str:
    """The text with its entities decoded, also those that were encoded twice, and without tags and links."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    if "<" in text or "[" in text:
        text = _TAG.sub(" ", _BLOCK_TAG.sub(_PARAGRAPH, text))
    return _LINK.sub(" ", text) if "://" in text or "ww." in text.lower() else text


def without_hashtags(text: str) -> str:
    """The text without words that begin with a number sign."""
    return _HASHTAG.sub(" ", text) if "#" in text else text


def without_names(text: str) -> str:
    """The text without names that begin with an at sign. An address of e-mail stays."""
    return _NAME.sub(" ", text) if "@" in text else text
