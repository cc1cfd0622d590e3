"""Pages that are files of the repository's root; links between them lead to the pages."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

PAGES = {
    "FORMAT.md": "reference/format.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add the pages."""
    root = Path(config["config_file_path"]).parent
    for name, page in PAGES.items():
        text = (root / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=relinked(text)))
    return files


def relinked(text: str) -> str:
    """Return the text with links to root files turned into links to their pages."""
    for name, page in PAGES.items():
        text = text.replace(f"]({name}", f"](../{page}")
    return text
