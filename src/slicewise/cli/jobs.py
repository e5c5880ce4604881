"""Jobs: a TOML file, read and checked into a frozen :class:`Job` without Spark or Java.

All mistakes in a file are raised at once, as one :class:`JobError`, each with its position.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path as FilePath
from typing import Any

from slicewise.amounts import TIME, to_amount
from slicewise.cli.diagnostics import Diagnostic, Diagnostics, JobError, Position
from slicewise.cli.overrides import apply_overrides
from slicewise.cli.queries import read_workload
from slicewise.cli.schemas import SchemaError, column_types
from slicewise.cli.table_reader import TableReader
from slicewise.cli.toml_positions import find_positions
from slicewise.errors import QueryError, SlicewiseError, did_you_mean, one_of
from slicewise.options import FLAG, SIZE, STREAMS, TEXT, Option, RunOptions
from slicewise.plan.panels import WIDE, WIDE_FIXED, Form
from slicewise.plan.plan import check_max_slice
from slicewise.results import RESERVED
from slicewise.slicing import check_attachable
from slicewise.workload import Workload

__all__ = ["KAFKA", "Attachment", "Job", "JobError", "Sink", "Source", "SparkSettings", "Trigger", "read_job"]

_TABLES = ("name", "source", "workload", "queries", "attach", "results", "sink", "trigger", "spark")
_SOURCE = ("format", "path", "table", "stream", "schema", "select", "where", "options")
_ATTACH = ("format", "path", "table", "schema", "select", "where", "options", "time")
_SINK = ("format", "path", "table", "mode", "checkpoint", "partition_by", "flatten", "options")
_TRIGGERS = ("available_now", "once", "processing_time")

#: Formats that are folders of files. Streams of them need a schema.
_FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
_STREAMS_ONLY = ("rate", "rate-micro-batch", "socket")
#: The source that comes with slicewise, beside Spark's own connector, which is "kafka".
KAFKA = "slicewise_kafka"
_PATHLESS = ("console", "kafka", KAFKA, "memory", "noop")
_FORMATS = (*_FILES, *_STREAMS_ONLY, *_PATHLESS, "delta", "iceberg", "hudi", "jdbc")
#: Formats that cannot hold structs such as `window` and `span`.
_FLAT = ("csv", "jdbc", "text")
_BATCH_MODES = ("append", "overwrite", "error", "ignore")


@dataclass(frozen=True)
class Source:
    """Where rows come from: a Spark format with paths and options, or a table; read as a batch or as a stream."""

    format: str | None
    path: tuple[str, ...] = ()
    table: str | None = None
    stream: bool = False
    schema: str | None = None
    select: tuple[str, ...] = ()
    where: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        kind = "stream" if self.stream else "batch"
        return f"{kind} of {self.table or self.format}{_paths(self.path)}"


@dataclass(frozen=True)
class Attachment:
    """Points to which the values of queries are added; the rows of the source themselves, if it is None."""

    points: Source | None = None
    time: str | None = None


@dataclass(frozen=True)
class Sink:
    """Where results go. ``flatten`` turns the structs ``window`` and ``span`` into columns."""

    format: str | None
    path: str | None = None
    table: str | None = None
    mode: str = "error"
    checkpoint: str | None = None
    partition_by: tuple[str, ...] = ()
    flatten: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.table or self.format}{_paths((self.path,) if self.path else ())}"


@dataclass(frozen=True)
class Trigger:
    """When a stream runs: one of the three, or none, which runs micro-batches without a pause until it is stopped."""

    available_now: bool = False
    once: bool = False
    processing_time: str | None = None

    @property
    def ends(self) -> bool:
        """Whether the stream ends by itself once it has read what is available."""
        return self.available_now or self.once


@dataclass(frozen=True)
class SparkSettings:
    """The session that the job asks for; options of the command line take precedence."""

    master: str | None = None
    packages: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """A job that can run: rows from a source, through a workload, to a sink.

    With ``attach`` the rows are events, and what goes to the sink are points with the values of queries.
    """

    name: str
    file: str
    source: Source
    workload: Workload
    sink: Sink
    trigger: Trigger = Trigger()
    spark: SparkSettings = SparkSettings()
    results: Mapping[str, Any] = field(default_factory=dict)
    attach: Attachment | None = None


def read_job(file: str, overrides: Sequence[str] = ()) -> Job:
    """The job of a file, after overrides such as ``"sink.path=out"``.

    Raises
    ------
    JobError
        With every mistake in the file.
    """
    text = _read_text(file)
    data = _parse(file, text)
    positions = find_positions(text)
    diagnostics = Diagnostics(file, tuple(text.split("\n")), positions.keys, positions.chars)
    apply_overrides(data, overrides, diagnostics)
    job = _read(data, file, diagnostics)
    diagnostics.raise_if_any()
    assert job is not None
    return job


def _read_text(file: str) -> str:
    try:
        text = FilePath(file).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise JobError([Diagnostic(file, _missing_file(file))]) from None
    except IsADirectoryError:
        raise JobError([Diagnostic(file, "this is a folder; expected a job file, as in job.toml")]) from None
    except UnicodeDecodeError as e:
        line = e.object.count(b"\n", 0, e.start) + 1
        raise JobError([Diagnostic(file, "this is not UTF-8 text; save the file as UTF-8", Position(line))]) from None
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or str(e)
        raise JobError([Diagnostic(file, f"this cannot be read: {why}")]) from None
    return text.replace("\r\n", "\n")


def _missing_file(file: str) -> str:
    folder = FilePath(file).parent
    there = [p.name for p in folder.glob("*.toml")] if folder.is_dir() else []
    near = difflib.get_close_matches(FilePath(file).name, there, n=3, cutoff=0.5)
    tip = f"did you mean {' or '.join(repr(str(folder / n)) for n in near)}?" if near else "give a job file in TOML"
    return f"there is no such file; {tip}"


def _parse(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        match = re.fullmatch(r"(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)", str(e), re.DOTALL)
        lines = text.split("\n")
        problem = match[1] if match else str(e)
        at = Position(int(match[2]), int(match[3])) if match and match[2] else Position(len(lines), len(lines[-1]) + 1)
        source_line = lines[at.line - 1] if at.line <= len(lines) else None
        message = f"this is not TOML: {problem[:1].lower()}{problem[1:]}{_toml_tip(problem, source_line)}"
        raise JobError([Diagnostic(file, message, at, source_line)]) from None
    except (ValueError, RecursionError):
        raise JobError(
            [
                Diagnostic(
                    file, "this is not TOML that can be read: a number is too long or tables are nested too deeply"
                )
            ]
        ) from None


def _toml_tip(problem: str, line: str | None) -> str:
    if "Invalid value" in problem and line and "=" in line:
        return "; strings need quotes"
    if "overwrite" in problem or "twice" in problem:
        return "; the same key or table appears twice"
    return ""


def _read(data: dict[str, Any], file: str, diagnostics: Diagnostics) -> Job | None:
    top = TableReader(data, (), diagnostics, _TABLES)
    name = top.text("name") or FilePath(file).stem
    source = _source(top)
    columns = _columns(source, diagnostics)
    workload = read_workload(top, None if source is None or source.select else columns)
    results = _results(top, source, workload)
    attach = _attachment(top, source, workload)
    known = None if workload is None or attach is not None else partial(_result_columns, workload)
    sink = _sink(top, source, known, wide=results.get("shape") == WIDE)
    trigger = _trigger(top, source)
    spark = _spark(top)
    if diagnostics or source is None or workload is None or sink is None:
        return None
    return Job(name, file, source, workload, sink, trigger, spark, results, attach)


def _source(top: TableReader) -> Source | None:
    table = top.table_of("source", _SOURCE, needed="say where rows come from: [source] with format and path")
    if table is None:
        return None
    stream = table.flag("stream")
    format_ = _format(table)
    paths = _source_paths(table, stream)
    name = table.text("table", expands=True)
    schema = table.text("schema")
    if format_ in _FILES and not table.has("path"):
        table.note(None, f"`source.path` is missing; say where the {format_} files are")
    if stream and format_ in _FILES and format_ != "text" and not table.has("schema"):
        table.note(
            None, f'`source.schema` is missing; a stream of {format_} needs it, as in schema = "ts TIMESTAMP, v DOUBLE"'
        )
    if not stream and format_ in _STREAMS_ONLY and not table.has("stream"):
        table.note("format", f"{format_!r} gives streams only; add stream = true")
    if name and table.has("schema"):
        table.note("schema", "`source.schema` is for files; a table has its own, so leave it out")
    select, where = table.texts("select"), table.text("where")
    return Source(format_, paths, name, stream, schema, select, where, table.options("options"))


def _attachment(top: TableReader, source: Source | None, workload: Workload | None) -> Attachment | None:
    if "attach" not in top.table:
        return None
    table = top.table_of("attach", _ATTACH)
    if table is None:
        return Attachment()
    if source is not None and source.stream:
        table.note(None, "`attach` adds columns to a table, and the source is a stream; leave stream = true out")
    if top.has("results"):
        top.note("results", "`results` is about windows that are reported, and with `attach` none is; leave it out")
    try:
        if workload is not None:
            check_attachable(workload)
    except QueryError as error:
        table.note(None, f"[attach] {error}")
    time = table.text("time")
    if not table.has("format") and not table.has("table"):
        for key in ("path", "schema", "select", "where", "options"):
            if table.has(key):
                table.note(key, f"`attach.{key}` needs `format` or `table`: without them, the source's rows are points")
        return Attachment(None, time)
    format_, paths, name = _format(table), _source_paths(table, False), table.text("table", expands=True)
    if format_ in _FILES and not table.has("path"):
        table.note(None, f"`attach.path` is missing; say where the {format_} files are")
    select, where = table.texts("select"), table.text("where")
    points = Source(format_, paths, name, False, table.text("schema"), select, where, table.options("options"))
    return Attachment(points, time)


def _source_paths(table: TableReader, stream: bool) -> tuple[str, ...]:
    if isinstance(table.table.get("path"), list):
        if stream and len(table.table["path"]) != 1:
            tip = 'a pattern such as "data/*" takes several folders'
            table.note("path", f"`source.path` must be a single string for a stream; {tip}")
        return table.texts("path", expands=True)
    path = table.text("path", expands=True)
    return () if path is None else (path,)


def _format(table: TableReader) -> str | None:
    """The format of a source or sink, which has either that or a table."""
    where = table.path[0]
    if table.has("table"):
        for key in ("format", "path"):
            if table.has(key):
                table.note(key, f"`{where}` has both `table` and `{key}`; leave one out")
        return None
    name = table.text("format", needed='give a Spark format such as "parquet", or a `table`')
    near = difflib.get_close_matches(str(name).lower(), _FORMATS, n=1, cutoff=0.75)
    if name is not None and near and name.lower() not in _FORMATS:
        table.note("format", f"unknown format {name!r}; did you mean {near[0]!r}?", at=0)
    return None if name is None else name.lower() if name.lower() in _FORMATS else name


def _columns(source: Source | None, diagnostics: Diagnostics) -> dict[str, str] | None:
    """The columns of the source with their types, if it has a schema."""
    if source is None or source.schema is None:
        return None
    try:
        return column_types(source.schema)
    except SchemaError as e:
        diagnostics.add(("source", "schema"), f"`source.schema`: {e}", at=e.at)
        return None


def _option_value(table: TableReader, option: Option) -> Any:
    if option.kind == FLAG:
        return table.flag(option.name) or None
    return table.size(option.name) if option.kind == SIZE else table.text(option.name)


def _results(top: TableReader, source: Source | None, workload: Workload | None) -> dict[str, Any]:
    """What is reported and when: the options of :meth:`slicewise.Workload.run`."""
    table = top.table_of("results", tuple(option.name for option in RunOptions.all()))
    if table is None:
        return {}
    values = {}
    for option in RunOptions.all():
        value = _option_value(table, option)
        if value is None:
            continue
        if wrong := _wrong_word(option, value):
            table.note(option.name, wrong, at=0)
        elif source is not None and (wrong := _wrong_place(option, value, source)):
            table.note(option.name, wrong)
        else:
            values[option.name] = value
    form = Form.of_run(RunOptions(**{name: values[name] for name in ("shape", "emit") if name in values}))
    try:
        if workload is not None:
            form.check(workload)
    except QueryError as error:
        table.note(error.parameter, f"[results] {error}")
    return values


def _wrong_word(option: Option, value: Any) -> str | None:
    if option.kind == SIZE:
        try:
            check_max_slice(value)
        except QueryError as error:
            return f"[results] {error}"
    if option.kind != TEXT:
        return None
    if option.words:
        return (
            None if value in option.words else f"`results.{option.name}` must be {one_of(option.words)}; got {value!r}"
        )
    try:
        to_amount(value, name=option.name)
    except SlicewiseError as error:
        return f"[results] {error}"
    return None


def _wrong_place(option: Option, value: Any, source: Source) -> str | None:
    place = option.place_of(value)
    if place is None or (place == STREAMS) == source.stream:
        return None
    tip = "add stream = true to [source], or leave it out" if place == STREAMS else "leave it out"
    why = f"; {option.why}" if option.why else ""
    shown = f"{value!r} of `results.{option.name}`" if option.streaming else f"`results.{option.name}`"
    return f"{shown} is for {place}{why}; {tip}"


def _sink(
    top: TableReader, source: Source | None, columns: Callable[..., list[str]] | None, *, wide: bool
) -> Sink | None:
    """Where results go; ``columns`` gives those that they have, if they are windows."""
    table = top.table_of("sink", _SINK, needed="say where results go: [sink] with format and path")
    if table is None:
        return None
    stream = source is not None and source.stream
    format_, path = _format(table), table.text("path", expands=True)
    mode = _mode(table, stream) if source is not None else "append"
    checkpoint = table.text("checkpoint", expands=True)
    if stream and not table.has("checkpoint"):
        table.note(
            None, '`sink.checkpoint` is missing; a stream needs a folder to resume from, as in checkpoint = "state"'
        )
    if not stream and source is not None and table.has("checkpoint"):
        table.note("checkpoint", "`sink.checkpoint` is for streams; leave it out, or add stream = true to [source]")
    _check_sink_path(table, format_, path, source)
    flatten = table.flag("flatten")
    if format_ in _FLAT and not flatten and not wide and "attach" not in top.table:
        table.note(
            "format",
            f"{format_} cannot hold the structs `window` and `span`; add flatten = true, or use parquet or json",
        )
    partition_by = table.texts("partition_by")
    if columns is not None:
        _check_partition_by(table, partition_by, columns(flatten=flatten, wide=wide))
    options = table.options("options")
    return Sink(format_, path, table.text("table", expands=True), mode, checkpoint, partition_by, flatten, options)


def _mode(table: TableReader, stream: bool) -> str:
    if not stream:
        return table.one_of("mode", _BATCH_MODES, "error")
    mode = table.text("mode")
    if mode in (*_BATCH_MODES, "update", "complete") and mode != "append":
        why = "is for batches" if mode in _BATCH_MODES else "does not fit results, which are changes already"
        table.note("mode", f'`sink.mode` = "{mode}" {why}; a stream appends: leave it out', at=0)
    elif mode not in (None, "append"):
        table.note("mode", f"`sink.mode` must be append for a stream; got {mode!r}", at=0)
    return "append"


def _check_sink_path(table: TableReader, format_: str | None, path: str | None, source: Source | None) -> None:
    if format_ in _FILES and not table.has("path"):
        table.note(None, f"`sink.path` is missing; say where the {format_} files go")
    if format_ in _PATHLESS and table.has("path"):
        table.note("path", f"`sink.path` makes no sense with {format_!r}; leave it out")
    if format_ in (*_STREAMS_ONLY, KAFKA):
        table.note("format", f'{format_!r} is a source, not a sink; use "parquet" or "console"', at=0)
    if path is not None and source is not None and path.rstrip("/") in {p.rstrip("/") for p in source.path}:
        table.note("path", "`sink.path` is the path of the source; results need a folder of their own")


def _result_columns(workload: Workload, *, flatten: bool, wide: bool) -> list[str]:
    """The columns by which results may be put into folders."""
    if wide:
        computed = [f"{q.name}_{c}" for q in workload.queries for c in q.aggregates]
        return [*workload.keys, *WIDE_FIXED, *computed]
    computed = [c for q in workload.queries for c in q.aggregates]
    bounds = [f"{s}_{b}" for s in ("window", "span") for b in ("start", "end")] if flatten else []
    return [*workload.keys, *(c for c in RESERVED if c not in ("window", "span")), *computed, *bounds]


def _check_partition_by(table: TableReader, names: tuple[str, ...], known: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name not in known:
            message = f"`sink.partition_by` has {name!r}, which is not a result column; {did_you_mean(name, known)}"
            table.diagnostics.add((*table.path, "partition_by", i), message, at=0)


def _trigger(top: TableReader, source: Source | None) -> Trigger:
    table = top.table_of("trigger", _TRIGGERS)
    if table is None:
        return Trigger()
    if source is not None and not source.stream:
        table.note(None, "`trigger` is for streams; leave it out, or add stream = true to [source]")
    present = [key for key in _TRIGGERS if table.has(key)]
    if len(present) != 1:
        got = " and ".join(present) or "none"
        table.note(None, f"`trigger` takes one of {', '.join(_TRIGGERS)}; got {got}")
    for key in ("available_now", "once"):
        if table.table.get(key) is False:
            table.note(key, f"`trigger.{key}` = false has no effect; leave it out")
    every = table.text("processing_time")
    if every is not None:
        try:
            amount = to_amount(every, name="trigger.processing_time")
            every = str(amount) if amount.measure == TIME else every
        except QueryError as e:
            table.note("processing_time", str(e), at=0)
    return Trigger(table.flag("available_now"), table.flag("once"), every)


def _spark(top: TableReader) -> SparkSettings:
    table = top.table_of("spark", ("master", "packages", "conf"))
    if table is None:
        return SparkSettings()
    return SparkSettings(table.text("master", expands=True), table.texts("packages"), table.options("conf"))


def _paths(paths: Sequence[str]) -> str:
    return f" ({', '.join(paths)})" if paths else ""
