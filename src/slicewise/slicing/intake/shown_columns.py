"""Shown columns: what user code makes of rows, kept beside their columns under names that no user's column can have."""

from __future__ import annotations

from collections.abc import Mapping

from slicewise.aggregates.base import Monoid
from slicewise.columns import Column

__all__ = ["is_lifted", "shown_columns"]


def is_lifted(name: str) -> bool:
    """Whether a column holds what ``lift`` makes of rows, and can be made anew from the others."""
    return name.startswith(Monoid.LIFTED)


def shown_columns(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Those of some columns that user code made of the others."""
    return {name: column for name, column in columns.items() if name.startswith("\0")}
