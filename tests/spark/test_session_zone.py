"""A session far from UTC, over the hour that is not there in spring: instants are instants, local times stay local.

``make matrix`` runs this on every version of Spark.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.plan.plan import VALUES
from slicewise.slicing.operator import Operator
from slicewise.testing import stream
from tests.spark.running import rows_of, setting

pytestmark = pytest.mark.matrix

ZONE = "America/Los_Angeles"
#: In Los Angeles clocks go from 02:00 to 03:00 at this instant, 10:00 UTC.
SPRING = 1_710_064_800
#: How event time is made from seconds, and of which type windows are then.
TIMES = {
    "instants": ("timestamp_seconds(s)", pa.timestamp("us", "UTC")),
    # Every half hour of the hour that no clock in the session shows is among them.
    "local times": (
        "timestamp_ntz'1970-01-01' + make_dt_interval(0, 0, 0, cast(s - 28800 as decimal(18, 6)))",
        pa.timestamp("us"),
    ),
}
FAR = 10_000_000


def workload() -> sw.Workload:
    """Windows of every family; aggregates that give instants back, alone and inside of lists and structs."""
    return (
        sw.Workload("at", keys=["k"], watermark="1 day")
        .query("hours", sw.tumbling("1 hour"), n=sw.count(), most=sw.max("at"), listed=sw.collect_list("at"))
        .query("slides", sw.sliding("3 hours", every="30 minutes", offset="10 minutes"), last=sw.last("at"))
        .query("visits", sw.session("50 minutes"), first=sw.first("at"), best=sw.max_by("at", "v"))
        .query("threes", sw.tumbling(sw.rows(3)), m4=sw.m4("v"), total=sw.sum("v"))
        .query("bound", sw.between("2024-03-10 09:00:00", "2024-03-10 11:00:00"), n=sw.count())
    )


@pytest.fixture(scope="module")
def west(spark):
    with setting(spark, "spark.sql.session.timeZone", ZONE):
        yield spark


def frame(session, time, seconds, part=slice(None)):
    rows = [(s, "ab"[n % 2], n * 7 % 5) for n, s in enumerate(seconds)][part]
    made = session.createDataFrame(rows, "s bigint, k string, v bigint")
    return made.select(F.expr(time).alias("at"), "k", "v")


def as_numbers(type_: pa.DataType) -> pa.DataType:
    """A type with integers where there were instants, in lists and structs too."""
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_list(type_):
        return pa.list_(as_numbers(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, as_numbers(field.type)) for field in type_])
    return type_


def plain(table: pa.Table) -> list[str]:
    """Rows as text, with instants as microseconds; those of the far row that moves the watermark are left out."""
    numbers = pa.table({name: table.column(name).cast(as_numbers(table.schema.field(name).type)) for name in NAMES})
    rows = [row for row in rows_of(numbers) if row["k"] is not None]
    return sorted(str({name: row[name] for name in NAMES}) for row in rows)


NAMES = ["k", "query", "window", "span", "n", "most", "listed", "last", "first", "best", "m4", "total"]


@pytest.mark.parametrize(("time", "type_"), TIMES.values(), ids=TIMES)
def test_batch_stream_and_process_agree_in_a_session_that_is_not_utc(west, time, type_):
    seconds = [SPRING + 1800 * n for n in range(-7, 8)]
    rows = frame(west, time, seconds)
    at = pa.array([s - (28800 if type_.tz is None else 0) for s in seconds]).cast(pa.timestamp("s")).cast(type_)
    operator = Operator(workload(), ties=VALUES)
    operator.process_batch(rows.toArrow().set_column(0, "at", at))
    complete = plain(operator.advance((SPRING + FAR // 2) * 1_000_000).to_arrow())
    assert len(complete) > 30
    assert plain(workload().run(rows).toArrow()) == sorted(complete + plain(operator.close().to_arrow()))
    # The last rows come first; a row far away moves the watermark behind them.
    far = frame(west, time, [SPRING + FAR]).withColumn("k", F.lit(None).cast("string"))
    late, early = (frame(west, time, seconds, part) for part in (slice(8, None), slice(0, 8)))
    reported = stream([late, early, far], workload())
    assert plain(reported.toArrow()) == complete


def test_rows_that_are_given_back_have_the_instants_they_came_with(west):
    rows = frame(west, TIMES["instants"][0], [SPRING - 86_400 * 9, SPRING])
    times = [s * 1_000_000 for s in (SPRING - 86_400 * 9, SPRING)]
    late = sw.Workload("at", keys=["k"]).query("q", sw.tumbling("1 hour"), n=sw.count())
    batches = [rows.where("k = 'b'"), rows.where("k = 'a'")]
    given_back = stream(batches, late, folded=False, late="collect").toArrow()
    found = given_back.filter(pc.equal(given_back.column("change"), "late")).column("late").combine_chunks()
    assert found.field("at").cast(pa.int64()).to_pylist() == times[:1]
