"""Slice columns: what the JVM computes per slice, each expression once, and how Arrow brings it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from slicewise.aggregates.base import Parts
from slicewise.columns import Column
from slicewise.spark.source import Source
from slicewise.spark.types import read

__all__ = ["Columns", "Label", "Reader", "SliceColumns", "count_of", "values_of"]

#: The columns of some slices, by the names that :class:`SliceColumns` gave them.
Columns = Mapping[str, pa.Array]
Reader = Callable[[Columns], Parts]
#: What a column holds. Words and not one text: a user's column may be called anything, "count x" for one.
Label = tuple[str, ...]


@dataclass
class SliceColumns:
    """The columns that the JVM computes per slice: each expression once, however many aggregates need it."""

    expressions: dict[str, Expression] = field(default_factory=dict)
    #: Computed from the others, and those of the others that are needed for nothing else.
    after: dict[str, Expression] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    _names: dict[Label, str] = field(default_factory=dict)
    _prefix: Label = ()

    def column(self, label: Label, expression: Expression) -> str:
        """The name of a column that holds this aggregate expression; ``label`` says what it is."""
        return self._put(label, expression, self.expressions)

    def derived(self, label: Label, expression: Expression) -> str:
        """The name of a column that is computed from those of the slice."""
        return self._put(label, expression, self.after)

    def of_some(self, condition: str) -> SliceColumns:
        """The same columns for an aggregate that counts some rows only: what is computed over those is another."""
        return SliceColumns(self.expressions, self.after, self.hidden, self._names, (*self._prefix, condition))

    def _put(self, label: Label, expression: Expression, where: dict[str, Expression]) -> str:
        name = self._names.setdefault((*self._prefix, *label), f"p{len(self._names)}")
        where.setdefault(name, expression)
        return name

    @property
    def sent(self) -> list[str]:
        """The columns that go to the composer."""
        return [n for n in (*self.expressions, *self.after) if n not in self.hidden]


def count_of(name: str | None, source: Source, slice_columns: SliceColumns) -> str:
    """How many values of a column are not null; of one that never is, how many rows."""
    if name is None or name not in source.nullable:
        return slice_columns.column(("rows",), F.count(source.selected(F.lit(1))))
    return slice_columns.column(("count", name), F.count(source.internal(name)))


def values_of(columns: Columns, name: str, type_: pa.DataType | None = None) -> Column:
    """A column of the slices, with the type that it has in the plan."""
    return Column.of(columns[name]) if type_ is None else read(columns[name], type_)
