"""Stream: the shape of a streaming query. Rows become packs, packs meet in shards, shards report results."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slicewise.amounts import to_amount
from slicewise.errors import QueryError
from slicewise.options import RunOptions
from slicewise.plan.panels import Form
from slicewise.plan.plan import VALUES, Plan, plan_for
from slicewise.plan.routes import carries_stamps
from slicewise.slicing import ahead_length, describe, fingerprint
from slicewise.spark.known_frame import named
from slicewise.spark.output import Output, check_known_types, micros
from slicewise.spark.session import setting, shared_workers
from slicewise.spark.shipping import carried, for_workers
from slicewise.spark.source import TIME, Source, column, value_name
from slicewise.spark.streaming.heartbeat import with_heartbeat
from slicewise.spark.streaming.packs import NOW, PACK, ROW, SHARD, Packer
from slicewise.spark.streaming.pandas_state import pandas_reports, results_in_bytes
from slicewise.spark.streaming.processor import ShardJob, ShardProcessor, deferred
from slicewise.spark.streaming.shard_ids import shard_ids, shard_number
from slicewise.spark.streaming.shard_reports import LATEST, SHARD_METRICS, report_type, results_in
from slicewise.spark.types import arrow_type
from slicewise.spark.versions import has_row_state
from slicewise.workload import Workload

__all__ = ["run_stream"]

#: About how many chunks the state of a shard is spread over.
CHUNKS = 16


def run_stream(source: Source, options: RunOptions) -> DataFrame:
    """The results of a workload over a streaming DataFrame."""
    workload = source.workload
    form = Form.of_run(options)
    make_plan = partial(plan_for, workload, dict(source.types), time_type=source.time_type, ties=VALUES, form=form)
    plan = make_plan()
    check_known_types(plan.schema)
    session = source.frame.sparkSession
    partitions = int(setting(session, "spark.sql.shuffle.partitions", "200"))
    ids = shard_ids(partitions)
    whole = [_row(source)] if options.late == "collect" or options.bad == "fail" else []
    ahead = _ahead(options.ahead, source)
    rows = source.projected(_shard(source, partitions), *whole, *([] if ahead is None else [_now()]))
    packer = Packer(
        make_plan,
        dict(source.types),
        workload.trusted,
        ids,
        slices=_can_slice(plan, options.late, options.bad) and not carries_stamps(workload),
        keys=len(workload.keys),
        bad=options.bad,
        ahead=ahead,
        unit=workload.time_measure.unit,
    )
    names = [TIME, *source.key_names, *(value_name(i) for i in range(len(source.inputs))), SHARD]
    names += [*([ROW] if whole else []), *([] if ahead is None else [NOW])]
    packs = named(rows, names).mapInArrow(for_workers(packer.__call__, session), PACK)
    job = _job(source, plan, options, partitions)
    if job.idle is not None:
        packs = with_heartbeat(packs, ids, job.idle)
    shards = packs.groupBy(SHARD)
    if has_row_state(shards):
        processor = carried(deferred(ShardProcessor(job)), session)
        with shared_workers(session):
            reports = shards.transformWithState(processor, report_type(job.output), "append", "none")
        unpacked = results_in
    else:
        reports, unpacked = pandas_reports(packs, job), results_in_bytes
    name = f"slicewise {fingerprint(describe(workload, False))}"
    # As text: every function that is called takes the JVM a dozen round trips.
    metrics = [F.expr(f"sum(metrics.{c}) AS {c}") for c in SHARD_METRICS.names if c not in LATEST]
    latest = {c: f"max(metrics.{c})" for c in LATEST}
    if pa.types.is_timestamp(source.time_type):
        latest["watermark"] = f"timestamp_micros({micros(latest['watermark'], plan.schema.unit)})"
    reports = reports.observe(name, *metrics, *(F.expr(f"{text} AS {c}") for c, text in latest.items()))
    return job.output.to_user(unpacked(reports, job.output))


def _can_slice(plan: Plan, late: str | None, bad: str | None) -> bool:
    """Whether shards can do without rows: no window and no aggregate depends on rows in order, and none is shown."""
    shown = late is not None or (bad == "fail" and plan.filled)
    return not (plan.context or plan.recomputed or shown)


def _shard(source: Source, partitions: int) -> Column:
    keys = [(F.expr(source.given(name)), source.spark_types[name]) for name in source.workload.keys]
    return shard_number(keys, partitions).alias(SHARD)


def _row(source: Source) -> Column:
    return F.struct(*(column(name) for name in source.frame.columns)).alias(ROW)


def _now() -> Column:
    """The time of the micro-batch, the same for all of its rows; it stands in the offset log, and so is kept."""
    return F.unix_micros(F.current_timestamp()).alias(NOW)


def _job(source: Source, plan: Plan, options: RunOptions, partitions: int) -> ShardJob:
    workload = source.workload
    late = None
    if options.late == "collect":
        late = arrow_type(source.frame.schema, ROW)
    output = Output(plan.schema, spans=bool(plan.context), marks=True, late=late)
    reach = _reach(workload, options)
    kept = reach + workload.lateness + workload.watermark
    return ShardJob(
        workload,
        dict(source.types),
        source.time_type,
        output,
        ahead=reach + 1 if options.emit == "changes" else 0,
        width=1 << max((kept // CHUNKS).bit_length(), 1),
        idle=_idle(options.idle, source),
        shards=partitions,
        bad=options.bad,
        gaps=options.ahead is None,
        ordered=options.ordered,
        store=options.store,
        max_slice=options.max_slice,
        form=Form.of_run(options),
    )


def _reach(workload: Workload, options: RunOptions) -> int:
    """How far the end of a window may lie behind its rows."""
    for query in workload.queries if options.emit == "changes" else ():
        if query.window.reach is None:
            raise QueryError(
                f"query {query.name!r}: emit='changes' reports windows before they end, and {query.window!r} does not "
                "say how long they are; give its windows as a table, or leave `emit` out",
                parameter="emit",
                query=query.name,
            )
    return max((query.window.reach or 0 for query in workload.queries), default=0)


def _idle(duration: str | None, source: Source) -> int | None:
    if duration is None:
        return None
    amount, workload = to_amount(duration, name="idle"), source.workload
    # Integers without a unit go with no clock, also where windows only count rows.
    plain = pa.types.is_integer(source.time_type) and not workload.needs_unit
    if amount.measure.kind != "time" or workload.time_measure.kind != "time" or plain:
        raise QueryError(f"`idle` is a duration on the clock, and event time must be too; got {duration!r}")
    return int(amount.size)


def _ahead(length: str | None, source: Source) -> int | None:
    if length is None:
        return None
    return ahead_length(source.workload, length, integers=pa.types.is_integer(source.time_type))
