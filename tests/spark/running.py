"""Helpers: results on Spark beside results of the in-process operator, compared row by row."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import slicewise as sw
from slicewise.plan.plan import VALUES
from slicewise.slicing.operator import Operator
from tests.arrow_rows import rows_with_maps


@contextlib.contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A session with another setting for a while."""
    before = spark.conf.get(name)
    assert before is not None
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def ansi(spark: SparkSession, on: bool) -> contextlib.AbstractContextManager[None]:
    """A session in ANSI mode, or not."""
    return setting(spark, "spark.sql.ansi.enabled", str(on).lower())


def same(a: Any, b: Any) -> bool:
    """Whether two results are the same, up to the rounding of a different order of additions."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() == b.keys():
            return all(same(a[k], b[k]) for k in a)
        return same([*a.items()], [*b.items()])  # two NaNs are two keys
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def place(row: Mapping[str, Any], keys: Iterable[str]) -> str:
    """What tells a result from all others."""
    bounds = [None if row[name] is None else tuple(row[name].values()) for name in ("window", "span")]
    return repr(([row[k] for k in keys], row["query"], *bounds))


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, with event times as integers, whatever their zone."""
    window = table.schema.field("window").type
    bounds = pa.struct([(f.name, pa.int64()) for f in window])
    at = table.column_names.index("window")
    return rows_with_maps(table.set_column(at, "window", table.column("window").cast(bounds)))


def compare(found: pa.Table, expected: pa.Table, keys: Iterable[str]) -> None:
    """Fail with the first few differences between two tables of results."""
    assert set(found.column_names) == set(expected.column_names)
    mine, theirs = ({place(r, keys): r for r in rows_of(t)} for t in (found, expected))
    assert len(mine) == found.num_rows, "a window was reported twice"
    missing, extra = sorted(theirs.keys() - mine.keys()), sorted(mine.keys() - theirs.keys())
    assert not missing, f"{len(missing)} missing, {len(extra)} too many: {missing[:3]} {extra[:3]}"
    assert not extra, f"{len(extra)} too many: {extra[:3]}"
    times = [name for name, type_ in zip(found.column_names, found.schema.types, strict=True) if _has_time(type_)]
    wrong: Counter[str] = Counter()
    shown = []
    for at, row in mine.items():
        for name, value in row.items():
            if name not in times and not same(value, theirs[at][name]):
                wrong[name] += 1
                shown.append((at, name, value, theirs[at][name]))
    assert not wrong, f"{dict(wrong)}: {shown[:3]}"


def _has_time(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return any(_has_time(f.type) for f in type_)
    return bool(pa.types.is_timestamp(type_))


def on_spark(workload: sw.Workload, frame: DataFrame, **options: Any) -> pa.Table:
    """The results of a batch run, as an Arrow table."""
    return workload.run(frame, **options).toArrow()


def in_process(workload: sw.Workload, frame: DataFrame) -> pa.Table:
    """The results of the operator over the same rows; those of equal time come by their values, as on Spark."""
    op = Operator(workload, ties=VALUES)
    op.process_batch(frame.toArrow())
    return op.close().to_arrow()
