"""Carrying: code that brings slicewise with it, to a Python that has none.

Spark Connect gives artifacts to the workers of batches alone: neither the Python that it starts on the server for a
stream nor the workers of a stream see them. What a stream sends there can carry the package itself. This module is
pickled by value: it imports nothing but what every Python has, and is all that a Python without slicewise needs.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import io
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

__all__ = ["Carried", "carried_function"]


class Carried:
    """Something of slicewise that is pickled together with slicewise; unpickled, it is the thing itself.

    Parameters
    ----------
    pickled
        Makes the bytes of the thing.
    archive
        The package, as a zip file.
    """

    def __init__(self, pickled: Callable[[], bytes], archive: bytes) -> None:
        self.pickled, self.archive = pickled, archive

    def __reduce__(self) -> tuple[Any, ...]:
        return unpacked, (self.archive, self.pickled())

    def __call__(self, *_: Any) -> Any:
        raise NotImplementedError("only what comes out of the pickle is called")


def carried_function(carried: Carried) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A carried function as one that Spark takes: it looks at how many arguments there are."""
    return lambda batches: carried(batches)


def unpacked(archive: bytes, pickled: bytes) -> Any:
    """What was carried; the package is imported from the archive unless it is installed."""
    if importlib.util.find_spec("slicewise") is None:
        sys.meta_path.append(ArchiveFinder(archive))
    return pickle.loads(pickled)


class ArchiveFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules from a zip file that is nowhere but in memory."""

    def __init__(self, archive: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            self.sources = {name: opened.read(name) for name in opened.namelist() if name.endswith(".py")}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Called by Python for each import that nobody else could make."""
        stem = name.replace(".", "/")
        for file in (f"{stem}/__init__.py", f"{stem}.py"):
            if file in self.sources:
                package = file.endswith("/__init__.py")
                spec = importlib.machinery.ModuleSpec(name, self, origin=f"<slicewise.zip>/{file}", is_package=package)
                spec.has_location = True  # so that modules have a __file__
                return spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Called by Python with a module that has nothing in it yet."""
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        exec(compile(self.sources[spec.origin.partition("/")[2]], spec.origin, "exec"), module.__dict__)
