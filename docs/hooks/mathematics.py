r"""Formulas as MathML, made while the site is built: no script, no font, no network.

Formulas are those that arithmatex has marked. A displayed formula that ends in ``\tag{3}`` gets the
number (3) and the anchor ``#eq-3``; "(3)" in the text of any page about the mathematics becomes a
link to it.
"""

import html
import logging
import posixpath
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import Files

log = logging.getLogger("mkdocs.hooks.mathematics")

TAG = re.compile(r"\s*\\tag\{(\d+[a-z]?)\}\s*")
DISPLAYED = re.compile(r"^\$\$\n(.+?)\n\$\$$", re.DOTALL | re.MULTILINE)
MARKED = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.+?)\\[)\]]</\1>', re.DOTALL)


FOLDER = "mathematics/"
UNTOUCHED = re.compile(r"(```.*?```|\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]+`)", re.DOTALL)
REFERENCE = re.compile(r"\((\d+)\)")

numbered: dict[str, str] = {}
"""Page of every numbered formula."""


def on_files(files: Files, **_: Any) -> None:
    """Find out where the numbered formulas are."""
    numbered.clear()
    for file in files.documentation_pages():
        if file.src_uri.startswith(FOLDER):
            for number in TAG.findall(file.content_string):
                if number in numbered:
                    log.warning("%s: there are two formulas (%s)", file.src_uri, number)
                numbered[number] = file.src_uri


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put an anchor before every numbered formula, where links to it are checked, and link."""
    if not page.file.src_uri.startswith(FOLDER):
        return markdown
    parts = UNTOUCHED.split(markdown)
    parts[::2] = [linked(part, page.file.src_uri) for part in parts[::2]]
    return DISPLAYED.sub(_anchored, "".join(parts))


def _anchored(match: re.Match[str]) -> str:
    number = TAG.search(match[1])
    return f'<a id="eq-{number[1]}"></a>\n\n{match[0]}' if number else match[0]


def linked(text: str, page: str) -> str:
    """Return text in which "(3)" leads to formula 3."""

    def link(match: re.Match[str]) -> str:
        if match[1] not in numbered:
            return match[0]
        where = posixpath.relpath(numbered[match[1]], posixpath.dirname(page))
        return f"[({match[1]})]({where}#eq-{match[1]})"

    return REFERENCE.sub(link, text)


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """Replace what arithmatex has marked."""

    def rendered(match: re.Match[str]) -> str:
        text = html.unescape(match[3]).strip()
        number = TAG.search(text)
        formula = to_mathml(TAG.sub("", text), page.file.src_uri, displayed=match[2] == "[")
        if match[2] == "(":
            return formula
        label = f'<span class="number">({number[1]})</span>' if number else ""
        return f'<div class="equation">{formula}{label}</div>'

    return MARKED.sub(rendered, content)


def to_mathml(text: str, page: str, *, displayed: bool) -> str:
    """Convert one formula; what the converter does not know is a warning, which strict refuses."""
    formula = convert(text, display="block" if displayed else "inline")
    unknown = re.search(r"<m[io][^>]*>(\\[A-Za-z]+|&amp;|&)</m[io]>", formula)
    if unknown:
        log.warning("%s: the formula %r holds %s, which is not known", page, text, unknown[1])
    return formula
