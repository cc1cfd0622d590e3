"""The notebooks as pages of the site, with the outputs that they are committed with."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files

FOLDER = "notebooks"
WIDE = 750
"""Pictures of more pixels across scroll on a phone."""
PRINTED = "``` { .text .printed }"
"""Opens a block of what was printed; its long lines wrap."""
HEAD = """# Notebooks

The whole story with pictures, as it ran. `notebooks/` of the checkout holds the files;
[Installation](../installation.md#notebooks) says how to open them. They use a coarse mesh, so that
each takes about a minute.

"""


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add a page per notebook, its pictures, and a list of them."""
    paths = sorted((Path(config["config_file_path"]).parent / FOLDER).glob("*.ipynb"))
    rows = []
    for path in paths:
        pictures: dict[str, bytes] = {}
        lines = list(page(nbformat.read(path, as_version=4), path.stem, pictures))
        for name, content in pictures.items():
            files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.md", content="\n".join(lines)))
        title = next(line for line in "\n".join(lines).splitlines() if line.startswith("# "))
        rows.append(f"- [{title[2:]}]({path.stem}.md)")
    listing = HEAD + "\n".join(rows) + "\n"
    files.append(File.generated(config, f"{FOLDER}/index.md", content=listing))
    return files


def page(notebook: Any, stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """Yield a notebook as Markdown; its pictures are put into ``pictures`` by name."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield f"{cell.source}\n"
        elif cell.cell_type == "code":
            yield f"```python\n{cell.source}\n```\n"
            for output in cell.outputs:
                yield from _output(output, stem, pictures)


def _output(output: Any, stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    data = output.get("data", {})
    if output.output_type == "stream":
        yield f"{PRINTED}\n{output.text.rstrip()}\n```\n"
    elif "image/png" in data:
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode(data["image/png"])
        width = int.from_bytes(pictures[name][16:20])  # of the head of a PNG file
        yield f"![Output of the code above]({name}){'{.wide}' if width > WIDE else ''}\n"
    elif "text/html" in data:
        html = "".join(line.strip() for line in data["text/html"].splitlines())
        yield f'<div class="output">{html}</div>\n'
    elif "text/plain" in data:
        yield f"{PRINTED}\n{data['text/plain']}\n```\n"
