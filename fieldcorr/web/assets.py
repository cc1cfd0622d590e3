"""The modules and the style of the pages, as files and joined into one text.

A page that is one file, and a notebook's widget, have no place for several modules: they are joined
here, each once and after those that it imports. Names at the top of the modules are unique.
"""

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)


@cache
def asset(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("fieldcorr.web").joinpath(name).read_text(encoding="utf-8")


def joined_module(name: str) -> str:
    """Return a module with all that it imports as one module, which exports only its own names."""
    *others, own = _in_order(name, [])
    parts = [re.sub(r"^export ", "", _body(other), flags=re.MULTILINE) for other in others]
    return "\n".join([*parts, _body(own)])


def _body(name: str) -> str:
    return _IMPORT.sub("", asset(f"{name}.js"))


def _in_order(name: str, seen: list[str]) -> list[str]:
    for other in _IMPORT.findall(asset(f"{name}.js")):
        if other not in seen:
            _in_order(other, seen)
    seen.append(name)
    return seen
