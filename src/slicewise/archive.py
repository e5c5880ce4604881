"""Archive: slicewise itself as a zip file, for workers that have everything else. A leaf.

slicewise is pure Python, and Python imports from zip files: ``spark-submit --py-files slicewise.zip``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

__all__ = ["write_archive"]

#: The first time that a zip file can hold. The same version gives the same file, whenever it is written.
_WHEN = (1980, 1, 1, 0, 0, 0)


def write_archive(path: Path) -> int:
    """Write the package as a zip file; returns the number of files in it."""
    entries = sorted(_walk(files("slicewise"), "slicewise"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name, _WHEN), content, zipfile.ZIP_DEFLATED)
    return len(entries)


def _walk(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        inside = f"{name}/{item.name}"
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _walk(item, inside)
        else:
            yield inside, item.read_bytes()
