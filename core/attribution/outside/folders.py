"""A folder of finished heatmaps, found by the names of their images."""

from __future__ import annotations

import hashlib
import inspect
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from core.attribution.method import Query
from core.attribution.outside.external import ExternalMethod, ImageRecord
from core.class_names import ClassNames
from core.errors import ForetellError
from core.types import Explanation

PREFIX = "heatmaps:"
ENDINGS = (".npy", ".png")
"""Where an image has both, the first is read: it has the exact values, and the other may be a drawing of it."""
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
GREYS = {"1": 1, "L": 255, "I;16": 65535, "I;16B": 65535, "I;16L": 65535, "I": 65535}
"""White of each grey mode of Pillow; it opens 16-bit files as ``I`` or ``I;16``."""
MOST_NAMED = 3
Layout = Annotated[
    Literal["images", "classes"],
    "Images: the class of a heatmap is not recorded. Classes: the first level of folders names the explained class.",
]
Space = Annotated[
    Literal["auto", "input", "photograph"],
    "What heatmaps have the size of: the network's input or the photograph. Auto: whichever their own size fits.",
]
Values = NDArray[np.float32]


class HeatmapFolder(ExternalMethod):
    """Finished heatmaps by image name: ``NAME.png``, grey of 8 or 16 bit, or ``NAME.npy``, float (H, W).

    Grey becomes 0 to 1; NPY values stay as they are, above 0 for the class and below 0 against it. With
    ``layout = "classes"``, the first level of folders names the explained classes (name or index); with ``"images"``
    the class is not recorded. A heatmap has the size of the network's input, or of the photograph: then it is cut and
    resized as the photograph is. ``space`` says which where the sizes do not.

    Raises
    ------
    ForetellError
        When called: images without a heatmap; a file that is not a heatmap, or of another size.
    """

    reads_heatmaps = True

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ForetellError(f"There is no folder {folder}. Give the folder of the heatmaps as {PREFIX}FOLDER.")
        self.folder = folder
        parameters = [
            inspect.Parameter("layout", inspect.Parameter.KEYWORD_ONLY, default="images", annotation=Layout),
            inspect.Parameter("space", inspect.Parameter.KEYWORD_ONLY, default="auto", annotation=Space),
        ]
        super().__init__(PREFIX + folder.resolve().name, "Finished heatmaps by image name.", parameters)

    @cached_property
    def digest(self) -> str:  # type: ignore[override]
        """SHA-256 over the names and bytes of all heatmaps."""
        total = hashlib.sha256()
        for name, path in sorted(self._files.items()):
            total.update(f"{name}{path.suffix.lower()}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()

    def refuse_missing(
        self,
        records: Sequence[ImageRecord],
        layout: Layout = "images",
        classes: Sequence[int] = (),
        names: ClassNames | None = None,
    ) -> None:
        """Refuse images without a heatmap, and a heatmap that several images would have.

        ``classes`` are the classes explained of each, of the network's ``names``; without, one of any class will do.

        Raises
        ------
        ForetellError
            Names the first of them and counts the others.
        """
        if classes and names is not None and layout == "classes":
            tops, pairs = self._find_classes(names), zip(records, classes, strict=True)
            sought = {(r.names[0], f" ({names.categories[k]})"): self._find_of_class(r, tops[k]) for r, k in pairs}
        else:
            sought = {(record.names[0], ""): self._find_of_any_class(record, layout) for record in records}
        self._refuse([name + explained for (name, explained), paths in sought.items() if not paths], len(sought))
        users = defaultdict(set)
        for (name, _), files in sought.items():
            for file in files:
                users[file].add(name)
        shared = next(((file, names) for file, names in users.items() if len(names) > 1), None)
        if shared is not None:
            raise ForetellError(
                f"{self.__name__} has one heatmap, {self._relative(shared[0])}, for several images: "
                f"{_some(sorted(shared[1]))}. Put heatmaps into folders named like those of the images."
            )

    def explain(
        self, query: Query, records: Sequence[ImageRecord], layout: Layout = "images", space: Space = "auto", **_: Any
    ) -> Explanation:
        """Read the heatmap of each image."""
        if len(records) != len(query.inputs):
            raise ForetellError(
                f"{self.__name__} has finished heatmaps of named images. It cannot explain another network or a "
                "changed image, so measures that need such heatmaps do not apply to it."
            )
        tops = self._find_classes(query.classifier.names)
        files = [
            self._find_below(record, "") if layout == "images" else self._find_in(record, tops[k])
            for record, k in zip(records, query.classes.tolist(), strict=True)
        ]
        whose = "" if layout == "images" else " for the class that is explained"
        self._refuse([r.names[0] for r, file in zip(records, files, strict=True) if file is None], len(files), whose)
        maps, facts = [], []
        for record, file in zip(records, files, strict=True):
            assert file is not None
            values, white = self._read(file)
            placed, where = self._place(values, record, query.inputs.shape[2:], space, file)
            maps.append(torch.from_numpy(placed.astype(np.float32)))
            facts.append(self._facts(file, layout, where, white))
            query.progress(len(maps), len(files), "reading heatmaps")
        return query.explain(torch.stack(maps), facts)

    def _facts(self, file: Path, layout: Layout, space: str, white: int) -> dict[str, Any]:
        recorded = layout == "classes"
        origin = {
            "folder": self.folder.resolve().name,
            "file": self._relative(file),
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            "class": self._relative(file).split("/")[0] if recorded else "not recorded",
        }
        values = {"values": f"grey / {white}" if white else "as in the file"}
        warning = "The target class is not recorded in the folder of this heatmap: it may explain another class."
        return {
            "origin": origin,
            "parameters": {"layout": layout, "space": space, **values},
            "warnings": () if recorded else (warning,),
        }

    @cached_property
    def _files(self) -> dict[str, Path]:
        """Return every heatmap by its path in the folder, without ending."""
        paths: dict[str, Path] = {}
        for path in sorted(self.folder.rglob("*")):
            hidden = any(part.startswith(".") for part in path.relative_to(self.folder).parts)
            if path.suffix.lower() in ENDINGS and not hidden and path.is_file():
                key = _normal(path.relative_to(self.folder).with_suffix("").as_posix())
                if key not in paths or path.suffix.lower() == ENDINGS[0]:
                    paths[key] = path
        return paths

    @cached_property
    def _stems(self) -> dict[str, list[str]]:
        """Return the paths of all heatmaps with the same name in different folders."""
        paths_by_stem = defaultdict(list)
        for key in self._files:
            paths_by_stem[PurePosixPath(key).name].append(key)
        return paths_by_stem

    def _find_classes(self, names: ClassNames) -> dict[int, list[str]]:
        """Return the folders of each class: named by its index or by a name that is no other class's."""
        folders: dict[int, list[str]] = defaultdict(list)
        for top in sorted({key.split("/")[0] for key in self._files if "/" in key}):
            matches = names.find_numbered(top)
            if len(matches) == 1:
                folders[matches[0]].append(f"{top}/")
        return folders

    def _find_in(self, record: ImageRecord, tops: Iterable[str]) -> Path | None:
        """Find the heatmap of an image in the first of some folders that has it."""
        return next((file for top in tops if (file := self._find_below(record, top)) is not None), None)

    def _find_of_class(self, record: ImageRecord, tops: Iterable[str]) -> list[Path]:
        file = self._find_in(record, tops)
        return [] if file is None else [file]

    def _find_of_any_class(self, record: ImageRecord, layout: Layout) -> list[Path]:
        tops = {""} if layout == "images" else {key.split("/")[0] + "/" for key in self._files if "/" in key}
        return [file for top in sorted(tops) if (file := self._find_below(record, top)) is not None]

    def _find_below(self, record: ImageRecord, top: str) -> Path | None:
        """Find by path, then by name alone; in other folders only for an image that is in none itself."""
        names = [_normal(_strip_ending(name)) for name in record.names]
        stem = PurePosixPath(names[-1]).name
        for key in (*names, stem):
            if top + key in self._files:
                return self._files[top + key]
        below = [key for key in self._stems.get(stem, ()) if key.startswith(top)]
        return self._files[below[0]] if len(below) == 1 and "/" not in names[-1] else None

    def _refuse(self, missing: Sequence[str], total: int, whose: str = "") -> None:
        if missing:
            raise ForetellError(
                f"{self.__name__} has no heatmap{whose} of {_some(missing)} ({len(missing):,} of {total:,} images). "
                "Add one PNG or NPY file for each, named like the image."
            )

    def _relative(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    def _read(self, file: Path) -> tuple[Values, int]:
        """Read values (H, W), and the grey level that is 1; 0 where values are as in the file."""
        values, white = _read_array(file) if file.suffix.lower() == ".npy" else _read_grey(file)
        if not np.isfinite(values).all():
            raise ForetellError(f"{file} has NaN or infinite values. Replace them, or write that heatmap again.")
        return values, white

    def _place(
        self, values: Values, record: ImageRecord, shape: Sequence[int], space: Space, file: Path
    ) -> tuple[Values, str]:
        """Return values (H, W) of the input, and the space they were in."""
        fits = {"input": values.shape == tuple(shape), "photograph": values.shape == record.size[::-1]}
        same = record.geometry is not None and record.geometry.box == (0.0, 0.0, *map(float, record.size))
        if space == "auto" and all(fits.values()) and not same:
            raise ForetellError(
                f"{file} has the size of both the network's input and the photograph, and the input shows only a part "
                'of it. Set the parameter space to "input" or "photograph".'
            )
        frame = space if space != "auto" else "input" if fits["input"] else "photograph"
        if not fits[frame]:
            sizes = {"input": shape[::-1], "photograph": record.size}
            allowed = [f"{w} x {h} px of the {name}" for name, (w, h) in sizes.items() if space in ("auto", name)]
            raise ForetellError(
                f"{file} is {values.shape[1]} x {values.shape[0]} px, not {' or '.join(allowed)}. Resize that heatmap."
            )
        if frame == "input":
            return values, frame
        if record.geometry is None:
            raise ForetellError(
                f"{file} has the size of the photograph, and it is not known which part of it the network sees. Give "
                "heatmaps of the size of the network's input."
            )
        return record.geometry.resample(values.astype(np.float64)).astype(np.float32), frame


def _read_array(file: Path) -> tuple[Values, int]:
    try:
        values = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        said = str(error).partition("\n")[0]
        raise ForetellError(f"{file} cannot be read as a NumPy array ({said}). Write it with numpy.save.") from None
    if values.ndim != 2 or values.dtype.kind not in "fiub" or not values.size:
        raise ForetellError(
            f"{file} has shape {values.shape} of {values.dtype}. A heatmap is an array of numbers (H, W): sum over its "
            "channels."
        )
    return values.astype(np.float32), 0


def _read_grey(file: Path) -> tuple[Values, int]:
    try:
        with Image.open(file, formats=("PNG",)) as image:
            mode, values = image.mode, np.asarray(image)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise ForetellError(f"{file} cannot be read as a PNG. Write that heatmap again.") from None
    if mode not in GREYS:
        raise ForetellError(
            f"{file} is a colour image, and colours have no order. Save heatmaps as grey PNG of 8 or 16 bit, or as NPY."
        )
    return (values.astype(np.float32) / GREYS[mode]).astype(np.float32), GREYS[mode]


def _normal(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _strip_ending(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.with_suffix("")) if path.suffix.lower() in IMAGE_ENDINGS else name


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
