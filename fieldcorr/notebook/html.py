"""Small pieces of HTML: a card with a heading, rows of figures, and pictures beside them.

What flows in: texts (escaped here) and finished SVG. What flows out: HTML. Colours are left to the
notebook's theme, but for the pictures, which bring a white background.
"""

from collections.abc import Iterable, Mapping
from html import escape


def card(
    heading: str,
    rows: Mapping[str, str],
    *,
    note: str = "",
    pictures: Iterable[tuple[str, str]] = (),
) -> str:
    """Return a card.

    Parameters
    ----------
    heading
        What the object is.
    rows
        Names and values.
    note
        A sentence above the rows.
    pictures
        (SVG, caption) pairs, shown at the right.
    """
    sentence = f'<div style="max-width:34em;margin-bottom:4px">{escape(note)}</div>' if note else ""
    drawn = "".join(_picture(svg, caption) for svg, caption in pictures if svg)
    return (
        '<div style="display:flex;gap:16px;align-items:flex-start;font-size:90%">'
        f"<div><div><b>{escape(heading)}</b></div>{sentence}{_table(rows)}</div>{drawn}</div>"
    )


def _table(rows: Mapping[str, str]) -> str:
    cells = "".join(
        '<tr><td style="text-align:left;padding:1px 10px 1px 0;vertical-align:top;opacity:0.7">'
        f'{escape(name)}</td><td style="text-align:left;padding:1px 0">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f'<table style="border-collapse:collapse;margin:0">{cells}</table>'


def _picture(svg: str, caption: str) -> str:
    below = f'<div style="text-align:center">{escape(caption)}</div>' if caption else ""
    return f'<div><div style="background:#ffffff">{svg}</div>{below}</div>'
