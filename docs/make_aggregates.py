"""Write the page of aggregates from the registry: ``python docs/make_aggregates.py`` writes ``docs/aggregates.md``.

Nothing is said twice: names, kinds and traits are those of the classes, what an aggregate gives is the first sentence
of its docstring, and types, nulls and routes are asked for by binding it to columns. A test keeps the page current.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import slicewise as sw
from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.sketches import OfSketch
from slicewise.plan.routes import SLICES, is_sliced_in_numpy, route_of

PAGE = Path(__file__).parent / "aggregates.md"
INTRODUCTION = """# Aggregates

Every built-in aggregate. Written by `docs/make_aggregates.py` from the registry, `sw.AGGREGATES`; how each is called
and what its parameters mean is in [the API](api.md), and [the semantics](semantics.md) say what nulls, NaN and overflow
do.

- *Kind*: by the partial that a slice keeps. Distributive: it is the result; algebraic: it is of fixed size; holistic:
  it grows with the rows or values of the slice.
- *Inverse*: whether rows can be taken out of a partial again, so that long windows are differences of running values
  where that is exact.
- *Order*: whether rows must be combined in event-time order. *By time*: partials carry event times, so that late rows
  find their place without stored rows.
- *No values*: the answer for a window whose rows are all null in the column; *nulls* that are kept count as values.
- *In batch*: where partials are computed, in the JVM by Spark's own functions or in Python from the rows; `explain()`
  gives the reason. On streams all are computed in Python, next to where rows are read.

Another name of the same aggregate stands in parentheses.
"""
#: Types of columns that aggregates are tried on, and how the page calls each.
TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "decimal(10, 2)": pa.decimal128(10, 2),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array": pa.list_(pa.int64()),
}
NUMBERS = ("int", "bigint", "double", "decimal(10, 2)")
#: What several types are called together, the larger sets first.
SETS = {
    "any": tuple(TYPES),
    "any but nested": tuple(t for t in TYPES if t != "array"),
    "numbers and times": (*NUMBERS, "date", "timestamp"),
    "numbers": NUMBERS,
    "strings and bytes": ("string", "binary"),
    "strings": ("string",),
    "integers": ("int", "bigint"),
    "booleans": ("boolean",),
}
#: Arguments that an aggregate cannot do without, by the names of its parameters.
NEEDED = {"q": 0.5, "percentage": 0.5, "half_life": "1 minute", "k": 3}
#: The parameters that are columns.
COLUMNS = ("column", "columns", "value", "by", "weight", "y", "x", "col1", "col2")


class Entry(NamedTuple):
    """One line of a table."""

    name: str
    gives: str
    takes: str
    type: str
    nothing: str
    kind: str
    inverse: str
    order: str
    batch: str


def made(cls: type[Aggregate]) -> Aggregate:
    """An aggregate of the class, with columns ``a``, ``b`` and the arguments that it needs."""
    columns, named = iter("abcdef"), {}
    positional: list[str] = []
    for p in inspect.signature(cls).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            positional.append(next(columns))
        elif p.name in COLUMNS:
            named[p.name] = next(columns)
        elif p.default is p.empty or type(p.default) is object:
            assert p.name in NEEDED, f"say in NEEDED what {cls.name} takes for `{p.name}`"
            named[p.name] = NEEDED[p.name]
    return cls(*positional, **named)


def entry(cls: type[Aggregate]) -> Entry:
    """What the page says about an aggregate."""
    aggregate = made(cls)
    results = {name: result for name, t in TYPES.items() if (result := _result(aggregate, t)) is not None}
    assert results, f"{cls.name} takes none of {list(TYPES)}"
    known = TYPES[next(iter(results))]
    some = dict.fromkeys(aggregate.columns, known)
    aliases = [alias for alias, name in sw.ALIASES.items() if name == cls.name]
    workload = sw.Workload("t", keys=["k"]).query("q", sw.tumbling("1 minute"), x=aggregate)
    in_the_jvm = route_of(workload.queries[0], some).choice == SLICES and not is_sliced_in_numpy(workload)
    return Entry(
        f"`{cls.name}`" + (f" (`{'`, `'.join(aliases)}`)" if aliases else ""),
        _first_sentence(cls),
        next((name for name, types in SETS.items() if set(types) == set(results)), ", ".join(results)),
        _shown_types(results),
        _for_nothing(aggregate, [known] * len(aggregate.columns)),
        f"sketch: {cls.error}" if issubclass(cls, OfSketch) else cls.kind,
        "yes" if cls.invertible else "no",
        "any" if cls.commutative else "by time" if cls.timed else "in order",
        "JVM" if in_the_jvm else "rows",
    )


def _result(aggregate: Aggregate, type_: pa.DataType) -> pa.DataType | None:
    try:
        return aggregate.bind(*[type_] * len(aggregate.columns)).result
    except sw.SlicewiseError:
        return None


def _first_sentence(cls: type[Aggregate]) -> str:
    """Up to the first full stop or semicolon: what follows is about nulls and types, which have their own columns."""
    text = " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())
    text = re.split(r"[;.] |\.$|:  ", text)[0]
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")


def _shown_types(results: dict[str, pa.DataType]) -> str:
    """One word for all types of columns where there is one, otherwise each type with those that it is for."""
    if len(results) > 1 and all(result == TYPES[name] for name, result in results.items()):
        return "the column's"
    shown: dict[str, list[str]] = {}
    for name, result in results.items():
        shown.setdefault(_spark_name(result), []).append(name)
    if len(shown) == 1:
        return next(iter(shown))
    return "; ".join(f"{name} for {', '.join(of)}" for name, of in shown.items())


def _spark_name(type_: pa.DataType) -> str:
    t = pa.types
    if t.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if t.is_duration(type_):
        return "interval"
    if t.is_list(type_):
        return "array"
    if t.is_map(type_):
        return "map"
    if t.is_struct(type_):
        return f"struct({', '.join(field.name for field in type_)})"
    return {"int64": "bigint", "int32": "int", "bool": "boolean"}.get(str(type_), str(type_))


def _for_nothing(aggregate: Aggregate, types: list[pa.DataType]) -> str:
    """The answer over no values; said with it, nulls that count."""
    monoid = aggregate.bind(*types)
    value: Any = monoid.lower(monoid.identities(1)).to_arrow().to_pylist()[0]
    if isinstance(value, bytes):
        return "an empty sketch"
    kept = "" if aggregate.skips_nulls or aggregate.name.endswith("_by") else ", nulls kept"
    if pa.types.is_map(monoid.result):
        value = dict(value)
    return ("null" if value is None else repr(value).lower()) + kept


def page() -> str:
    """The whole page."""
    lines = [
        INTRODUCTION,
        "| aggregate | what it gives | takes | type | no values | kind | inverse | order | in batch |",
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for cls in sorted(sw.AGGREGATES.values(), key=lambda cls: cls.name):
        lines.append("| " + " | ".join(part.replace("|", "\\|") for part in entry(cls)) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
