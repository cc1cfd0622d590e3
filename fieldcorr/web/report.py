"""The report: one page that works from a file, without a network.

What stands in tables is written here; what can be touched is drawn by ``report.js`` from the data
in the page. A content security policy with the hashes of script and style lets nothing else run,
and nothing be fetched.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from fieldcorr.duel.fields import stimulation_in
from fieldcorr.notebook.cards import region_text
from fieldcorr.notebook.units import count, quantity
from fieldcorr.web.assets import asset, joined_module
from fieldcorr.web.data import heat_data, page_data
from fieldcorr.web.sessions import session_record

if TYPE_CHECKING:
    from fieldcorr.duel.engine import Engine
    from fieldcorr.duel.journal import JournalContent
    from fieldcorr.store import Store

NOTICE = (
    "Research software, not a medical device. Fields and r are modelled; check every configuration "
    "before it is delivered."
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src {script_hash}; \
style-src {style_hash}; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="fieldcorr">
<header><h1>{title}</h1><p class="quiet">{subtitle}</p><p class="notice">{notice}</p>
<nav aria-label="Parts">{links}</nav></header>
<main>{parts}</main>
<script type="application/json" id="page-data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def report_page(store: "Store", session: "tuple[Engine, JournalContent] | None" = None) -> str:
    """Return the report of a store, and of a session on it, as one page."""
    facts = store.info
    told = stimulation = None
    if session is not None:
        told = session_record(*session)
        stimulation = stimulation_in(store, session[1].header, session[0].events)
    data = {"data": page_data(store, stimulation), "heat": heat_data(store), "session": told}
    script = joined_module("report") + "\nawait startReport();\n"
    style = asset("page.css") + "@page { size: A4; margin: 14mm; }\n"
    parts = _parts(facts, told)
    return _PAGE.format(
        title=escape(f"Report on {store.path.name}"),
        subtitle=escape(
            f"Model {facts['model']}, {count(len(store))} configurations. {_sure(facts)}"
        ),
        notice=escape(NOTICE),
        links="".join(f'<a href="#{key}">{name}</a>' for key, name, _ in parts),
        parts="".join(
            f'<section class="card" id="part-{key}"><h2 id="{key}">{name}</h2>{body}</section>'
            for key, name, body in parts
        ),
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        script=script,
        script_hash=_source_hash(script),
        style=style,
        style_hash=_source_hash(style),
    )


def _parts(facts: Mapping[str, Any], told: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """Return (id, name, HTML) of the parts of the page, in order."""
    found = [
        ("summary", "Summary and provenance", _summary(facts)),
        ("error", "Verification, and the error of r", _verification(facts)),
        ("array", "Array, fields and neighbours", '<div id="picker"></div>'),
        ("map", "Correlation of all with all", '<div id="heat"></div>'),
        ("list", "Configurations", '<div id="configurations"></div>'),
    ]
    if told is not None:
        head = _table("facts", told["facts"])
        found.insert(0, ("course", "Session", f'{head}<div id="session"></div>'))
    return found


def _summary(facts: Mapping[str, Any]) -> str:
    near = facts["neighbours_per_row"]
    store = {
        "array": f"{facts['device']}, {facts['contacts']} electrodes",
        "compared": f"{facts['measure']['kind']} in {region_text(facts['region'])}",
        "drive": facts["drive"]["mode"],
        "embedding": f"rank {facts['rank']}",
        "neighbours": ", ".join(f"{number:.0f} with r > {r}" for r, number in near.items())
        + " on average",
        "file": f"{quantity(facts['size_bytes'], 'B')}, format {facts['format']}",
    }
    origin = {
        "made": facts["run"].get("created", "unknown"),
        "versions": ", ".join(f"{name} {number}" for name, number in facts["versions"].items()),
        "hash of the store": facts["hash"],
        **{f"hash of the {name}": value for name, value in facts["hashes"].items()},
    }
    return (
        f'<div class="two">{_table("facts", store.items())}{_table("facts", origin.items())}</div>'
    )


def _verification(facts: Mapping[str, Any]) -> str:
    identities = [(name, f"{value:.1e}") for name, value in facts["identities"].items()]
    identities.append(("largest residual", f"{facts['largest_residual']:.1e}"))
    estimate = facts["error_estimate"]
    if estimate is None:
        told = "<p>The error of r was not estimated.</p>"
    else:
        names = {"companion": "companion mesh", "order_one": "order 1, a loose bound"}
        rows = [
            (text, *(f"{estimate[key][name]:.1e}" for name in ("max", "p99", "median")))
            for key, text in names.items()
            if estimate[key] is not None
        ]
        told = _table("numbers", rows, ("|\u0394r| from", "largest", "99 %", "median"))
        told += f'<p class="quiet">{escape(estimate["statement"])}</p>'
    return (
        '<div class="two"><div><h3>Physical identities, relative error</h3>'
        f"{_table('facts', identities)}</div><div><h3>Error of r by the mesh</h3>{told}</div></div>"
    )


def _table(
    kind: str, rows: Iterable[Iterable[object]], columns: Iterable[str] | None = None
) -> str:
    """Return a table whose first column names the rows."""
    head = ""
    if columns is not None:
        cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
        head = f"<thead><tr>{cells}</tr></thead>"
    body = ""
    for name, *values in rows:
        cells = "".join(f"<td>{escape(str(value))}</td>" for value in values)
        body += f'<tr><th scope="row">{escape(str(name))}</th>{cells}</tr>'
    return f'<table class="{kind}">{head}<tbody>{body}</tbody></table>'


def _sure(facts: Mapping[str, Any]) -> str:
    estimate = facts["error_estimate"] or {}
    for key in ("companion", "order_one"):
        if estimate.get(key) is not None:
            return f"r is uncertain by about {estimate[key]['max']:.1e} at most, by the mesh alone."
    return ""


def _source_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
