"""The notebooks of ``docs/notebooks``: execute them, remove the machine's traces, compare outputs."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = tuple(sorted(FOLDER.glob("*.ipynb")))

LONGEST_S = 300
"""Seconds after which a cell is stopped."""
RELATIVE = 0.02
UNITS = 2.0
"""Two decimal numbers agree if they differ by at most 2%, or by two units of the last printed digit."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
VARIES = "varies"
"""Tag of cells whose numbers depend on the last bits of the arithmetic: only kinds of outputs are compared."""
WIDTH, COLOURS = 600, 128
"""Images in committed outputs have at most so many pixels in a row, and so many colours."""
NUMBER = re.compile(r"[-−+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
HASH = re.compile(r"\b[0-9a-f]{16,}\b")
EMBEDDED = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")


def execute(path: Path) -> Any:
    """Execute a notebook from its first cell in a new folder that has the files next to it; return it with its outputs.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        A cell raises an error.
    """
    notebook = clear(nbformat.read(path, as_version=4))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        shutil.copytree(path.parent, work, ignore=shutil.ignore_patterns("*.ipynb", ".*", "workspace"))
        settings = {"resources": {"metadata": {"path": str(work)}}, "timeout": LONGEST_S}
        NotebookClient(notebook, km=_make_kernel(Path(folder)), **settings).execute(env=_environment(Path(folder)))
    return normalise(notebook)


def _make_kernel(folder: Path) -> AsyncKernelManager:
    if sys.platform == "win32":  # no sockets as files there, and pyzmq needs the other event loop
        asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
        return AsyncKernelManager(kernel_name="python3")
    return AsyncKernelManager(kernel_name="python3", transport="ipc", connection_file=str(folder / "kernel.json"))


def _environment(folder: Path) -> dict[str, str]:
    settings = {name: str(folder / name.lower()) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "FORETELL_HOME")}
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, **settings, **one_thread, "TQDM_DISABLE": "1", "PYTHONPATH": path}


def clear(notebook: Any) -> Any:
    """Remove every output."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def normalise(notebook: Any) -> Any:
    """Remove what only belongs to this execution: times, versions, names of the kernel, random ids of cells."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    count = 0
    for number, cell in enumerate(notebook.cells, 1):
        cell.metadata = nbformat.from_dict({"tags": [VARIES]} if is_variable(cell) else {})
        cell.id = f"cell-{number}"
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = list(_join_streams(cell.outputs))
            for output in cell.outputs:
                _normalise_output(output, count)
    return notebook


def _normalise_output(output: Any, count: int) -> None:
    if "metadata" in output:
        output.metadata = nbformat.from_dict({})
    if output.output_type == "execute_result":
        output.execution_count = count
    for kind, content in output.get("data", {}).items():
        if kind == "image/png":
            output.data[kind] = _shrink(content)
        elif kind == "text/html":
            output.data[kind] = EMBEDDED.sub(lambda match: f"data:image/png;base64,{_shrink(match[1])}", content)


def _shrink(encoded: str) -> str:
    """Reduce the size and colours of a PNG in base64, so that the repository stays small."""
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        if image.mode == "P" and image.width <= WIDTH:
            return encoded
        height = round(image.height * min(1, WIDTH / image.width))
        smaller = image.convert("RGB").resize((min(WIDTH, image.width), height), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    smaller.quantize(COLOURS, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def is_variable(cell: Any) -> bool:
    """Tell whether the numbers of a cell may differ between machines."""
    return VARIES in cell.metadata.get("tags", [])


def _join_streams(outputs: list[Any]) -> Iterator[Any]:
    """Join consecutive pieces of one stream: how it is cut depends on the machine's speed."""
    last = None
    for output in outputs:
        if last is not None and output.output_type == "stream" == last.output_type and output.name == last.name:
            last.text += output.text
            continue
        last = output
        yield output


def serialise(notebook: Any) -> str:
    """Return a notebook as the text of its file."""
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook, version=4)) + "\n"


def list_texts(cell: Any) -> list[tuple[str, str]]:
    """List what a cell printed: pairs of a kind (a stream or a MIME type) and a text, images without their bytes."""
    texts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            texts.append((output.name, output.text))
        elif output.output_type == "error":
            texts.append(("error", f"{output.ename}: {output.evalue}"))
        else:
            data = output.data
            texts += [(kind, data[kind] if kind.startswith("text/") else "") for kind in sorted(data)]
    return [(kind, HASH.sub("hash", EMBEDDED.sub("image", text))) for kind, text in texts]


def find_differences(committed: Any, executed: Any) -> list[str]:
    """List the cells whose printed outputs differ, numbers within `RELATIVE` and `UNITS` apart."""
    pairs = zip_longest(committed.cells, executed.cells)
    return [line for number, pair in enumerate(pairs, 1) for line in _compare_cells(number, *pair)]


def _compare_cells(number: int, committed: Any, executed: Any) -> Iterator[str]:
    if committed is None or executed is None:
        yield f"Cell {number} is only in one of the notebooks."
        return
    before, after = list_texts(committed), list_texts(executed)
    if [kind for kind, _ in before] != [kind for kind, _ in after]:
        yield f"Cell {number} has outputs {[kind for kind, _ in after]}, and had {[kind for kind, _ in before]}."
        return
    if is_variable(committed):
        return
    for (kind, old), (_, new) in zip(before, after, strict=True):
        if not agree(old, new):
            yield f"Cell {number}, {kind}: now\n{new}\nand before\n{old}"


def agree(first: str, second: str) -> bool:
    """Tell whether two texts agree but for spaces and small differences between decimal numbers."""
    words = [re.sub(r"[\s-]+", " ", NUMBER.sub("#", text)).strip() for text in (first, second)]
    numbers = [NUMBER.findall(text) for text in (first, second)]
    return words[0] == words[1] and all(_are_close(*pair) for pair in zip(*numbers, strict=True))


def _are_close(first: str, second: str) -> bool:
    if "." not in first + second and "e" not in first + second:
        return first == second
    one, other = (float(text.replace("−", "-")) for text in (first, second))
    unit = max(_find_unit(first), _find_unit(second))
    return abs(one - other) <= max(RELATIVE * max(abs(one), abs(other)), UNITS * unit * (1 + 1e-9))


def _find_unit(text: str) -> float:
    digits, _, power = text.partition("e")
    return float(10.0 ** (int(power or 0) - len(digits.partition(".")[2])))


def write_outputs() -> None:
    """Execute every notebook, and write those whose outputs are missing or have changed."""
    for path in NOTEBOOKS:
        committed, executed = nbformat.read(path, as_version=4), execute(path)
        kept = committed if not find_differences(committed, executed) else executed
        path.write_text(serialise(normalise(kept)), encoding="utf-8")
