"""What is no word of a text: entities and tags of HTML and of forums, links, what mails and posts quote, hashtags and names.

Each text is cleaned by itself, in time that grows with its length, so no document changes what is read of another.
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
BEFORE_HASHTAG, BEFORE_NAME = r"(?<![\w&/])#", r"(?<![\w./])@"  # neither an entity, nor the middle of a link or an address
_HASHTAG, _NAME = re.compile(rf"{BEFORE_HASHTAG}\w[\w-]*"), re.compile(rf"{BEFORE_NAME}\w[\w.-]*")
_PARAGRAPH = "\n\n"  # ends a sentence


_QUOTED_BLOCK = re.compile(
    r"(?P<quote>\[(?:full)?quote(?:[=\s][^\[\]]{0,500})?\]|<blockquote\s[^<>]{0,500}(?:\bcite\b|gmail_quote)[^<>]{0,500}>)|"
    r"(?P<other><blockquote(?=[\s>])[^<>]{0,2000}>)|(?P<end>\[/(?:full)?quote\]|</blockquote\s*>)",
    re.IGNORECASE,
)
# Neither a comparison that begins a line ("> 30 kg") nor what a Python shell shows.
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|&gt;)(?![ \t]*[\d=]|>>[ \t])[^\n]*", re.MULTILINE)
_QUOTED_NEXT = re.compile(r"\s*(?:>|&gt;)")
# What follows is an earlier mail: a line that says so, or the head that Outlook writes.
_EARLIER = re.compile(
    r"^[ \t]*-{2,}[ \t]*(?:original message|original-nachricht|ursprüngliche nachricht|mensaje original|message d['’]origine|"
    r"messaggio originale|mensagem original|oorspronkelijk bericht|izvirno sporočilo|originalno sporočilo|izvorna poruka|"
    r"wiadomość oryginalna)[ \t]*-{2,}|"
    r"^[ \t_]*\n[ \t]*\*?(?:from|von|de|od|da|van)\*?:[^\n]{1,300}\n"
    r"[ \t]*\*?(?:sent|gesendet|enviado|envoyé|inviato|verzonden|poslano)\b[^\n]{1,300}\n"
    r"[ \t]*\*?(?:to|an|para|à|a|aan|za)\*?:",
    re.IGNORECASE | re.MULTILINE,
)
_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|schrieben|escribió|escribio|écrit|scritto|schreef|escreveu|napisal|napisala|napisał|napisao)\b"
    r"[^\n]{0,120}:[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_BEGUN = r"(?:On|Am|El|Le|Il|Op|Em|Dne|Dana|W dniu)\b[^\n]*"
_WHEN = re.compile(rf"{_BEGUN}(?:\b[12]\d\d\d\b|\b\d{{1,2}}[:.]\d\d\b|@)")  # a year, a time of day, a short date or an address
_SOME_DAY = re.compile(rf"{_BEGUN}\d")
_IN_ARTICLE = re.compile(r"^[ \t]*In article <[^\n]*", re.MULTILINE)


def cleaned(text: str, *, markup: bool, quotes: bool) -> str:
    """The text without markup: its entities decoded, also those that were encoded twice, and without tags and links.

    And without quotes: lines behind ">", blocks that a forum or a mail program marks as quoted, the line that says who wrote
    them, and the earlier mail below an answer. A text that is nothing but a quote stays.
    """
    whole = text
    if quotes:
        text = text.replace("\r\n", "\n")
    if markup and "&" in text:
        text = html.unescape(html.unescape(text))
    if quotes and ("[" in text or "<" in text):
        text = _without_quoted_blocks(text)
    if markup and "<" in text:
        text = _BLOCK_TAG.sub(_PARAGRAPH, text)
    if markup and ("<" in text or "[" in text):
        text = _TAG.sub(" ", text)
    if quotes:
        text = _without_quoted_lines(text)
    if markup and ("://" in text or "ww." in text.lower()):
        text = _LINK.sub(" ", text)
    if quotes and text != whole and not any(map(str.isalnum, text)):
        return cleaned(whole, markup=markup, quotes=False)
    return text


def _without_quoted_blocks(text: str) -> str:
    """A block that nobody closes is none."""
    open_at, blocks = list[tuple[int, bool]](), list[tuple[int, int]]()
    for tag in _QUOTED_BLOCK.finditer(text):
        if not tag["end"]:
            open_at += [(tag.start(), tag["quote"] is not None)] if open_at or tag["quote"] else []
        elif open_at:
            begins, is_quote = open_at.pop()
            while is_quote and blocks and blocks[-1][0] > begins:
                blocks.pop()  # it stands in this one
            blocks += [(begins, tag.end())] if is_quote else []
    kept, end = list[str](), 0
    for begins, ends in blocks:
        kept += [text[end:begins], _PARAGRAPH]
        end = ends
    return "".join([*kept, text[end:]])


def _without_quoted_lines(text: str) -> str:
    earlier = _EARLIER.search(text)
    if earlier is not None and any(map(str.isalnum, text[: earlier.start()])):
        text = text[: earlier.start()]
    kept, end = list[str](), 0
    for wrote in _WROTE.finditer(text):  # a line that names when or an address, or some day before a quote; it may be two lines
        when = _SOME_DAY if _QUOTED_NEXT.match(text, wrote.end()) else _WHEN
        begins = text.rfind("\n", 0, wrote.start()) + 1
        before = text.rfind("\n", 0, max(begins - 1, 0)) + 1
        for start in (begins, before):
            line = text[start : wrote.start()].lstrip()
            if start >= end and (when.match(line) or (start == begins and "@" in text[start : wrote.end()])):
                kept.append(text[end:start])
                end = wrote.end()
                break
    text = "".join([*kept, text[end:]])
    if "In article <" in text:
        text = _IN_ARTICLE.sub("", text)
    return _QUOTED_LINE.sub("", text) if ">" in text or "&gt;" in text else text


def without_hashtags(text: str) -> str:
    """The text without words that begin with a number sign."""
    return _HASHTAG.sub(" ", text) if "#" in text else text


def without_names(text: str) -> str:
    """The text without names that begin with an at sign. An address of e-mail stays."""
    return _NAME.sub(" ", text) if "@" in text else text
