"""Run notebooks in fresh kernels and save them with figures of few bytes.

Takes paths of notebooks, or none for all. Figures are reduced to 256 colours, a third of the bytes;
nothing that changes from run to run is kept but the results themselves.
"""

import base64
import io
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
TEMPORARY = re.compile(rf"{re.escape(tempfile.gettempdir())}/[^/\s'\"<]+/")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(path: Path) -> None:
    """Execute one notebook and save it."""
    notebook: Any = nbformat.read(path, as_version=4)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, resources=resources, record_timing=False).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shrink(output.get("data", {}))
            forget_folders(output)
    notebook.metadata = METADATA
    nbformat.write(notebook, path)
    seconds = time.perf_counter() - started
    print(f"{path.name}: {seconds:.0f} s, {path.stat().st_size / 1e3:.0f} kB", flush=True)


def shrink(data: dict[str, str]) -> None:
    """Reduce a PNG figure to 256 colours, in place."""
    if "image/png" in data:
        few = few_colours(base64.b64decode(data["image/png"]))
        data["image/png"] = base64.b64encode(few).decode()


def forget_folders(output: dict[str, Any]) -> None:
    """Take names of temporary folders out of texts, in place: they differ from run to run."""
    for holder, keys in ((output, ["text"]), (output.get("data", {}), ["text/plain", "text/html"])):
        for key in keys:
            if key in holder:
                holder[key] = TEMPORARY.sub("", holder[key])


def few_colours(png: bytes) -> bytes:
    """Return a PNG picture with 256 colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    # The method that keeps rare colours: lines and labels matter more than smooth fields.
    few = image.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(map(str, FOLDER.glob("*.ipynb"))):
        run(Path(name))
