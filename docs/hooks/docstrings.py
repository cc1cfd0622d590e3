"""Turn the little reStructuredText of our docstrings into the site's Markdown.

Roles such as ``:class:`~fieldcorr.store.Store``` become links, ``::`` at the end of a line becomes
``:``, and tables between lines of ``===`` are kept as they are written. Parameters that share one
text are taken apart: each has its own type. Methods that only Python itself calls are left out.
"""

import re
from typing import Any

import griffe

TABLE = re.compile(r"^(=+ +=[= ]*)\n(.*?)\n\1$", re.DOTALL | re.MULTILINE)
PARAMETERS = re.compile(r"^Parameters\n-+\n(?:\w.*\n(?:    .*\n?|\n(?=    ))+)+", re.MULTILINE)
UNCALLED = ("__post_init__", "__reduce__", "__deepcopy__")
SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?:    .*\n?|\n(?=    ))+)", re.MULTILINE)
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)([^`]+)`")


class PlainRoles(griffe.Extension):
    """Turns reStructuredText roles into links that need not be found."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.name in UNCALLED:
            obj.docstring = None  # the site shows nothing that has none
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value, obj)


def to_markdown(text: str, owner: griffe.Object) -> str:
    """Return a docstring as Markdown."""

    def link(match: re.Match[str]) -> str:
        target = "".join(match[2].split())
        shown = target.rsplit(".", 1)[-1] if match[1] else target
        parent = owner.path if owner.is_module or owner.is_class else owner.parent.path
        full = target if target.startswith("fieldcorr") else f"{parent}.{target}"
        return f'<autoref optional identifier="{full}"><code>{shown}</code></autoref>'

    plain = PARAMETERS.sub(lambda part: SHARED.sub(_apart, part[0]), TABLE.sub(_as_written, text))
    return re.sub(r" ?::$", ":", ROLE.sub(link, plain), flags=re.MULTILINE)


def _apart(shared: re.Match[str]) -> str:
    about = shared[2].rstrip("\n")
    return "".join(f"{name}\n{about}\n" for name in shared[1].split(", "))


def _as_written(table: re.Match[str]) -> str:
    return f"```text\n{ROLE.sub(lambda role: role[2].strip('~'), table[2])}\n```"
