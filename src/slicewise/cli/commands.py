"""Commands: what ``slicewise`` does on the command line. Each reads, checks, calls what does the work, and reports."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from slicewise.archive import write_archive
from slicewise.cli import benchmarks, football_demo
from slicewise.cli import doctor as doctors
from slicewise.cli.diagnostics import Mistake
from slicewise.cli.job_runner import (
    brief,
    flattened,
    follow,
    hush,
    open_session,
    read_source,
    run_batch,
    start_stream,
    stopping,
)
from slicewise.cli.jobs import Job, JobError, read_job
from slicewise.cli.status import Status, count
from slicewise.cli.stderr_filter import filtered
from slicewise.errors import MissingPackageError, SlicewiseError

__all__ = ["app"]

FAILED, MISTAKEN, INTERRUPTED = 1, 2, 130
_CODES = """
Exit codes: 0 everything went well; 1 the job or a check failed; 2 there are mistakes in what was given;
130 interrupted.
"""

app = typer.Typer(
    name="slicewise",
    help="Window aggregation on Spark: any number of windows in one pass.\n" + _CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

JobFile = Annotated[str, typer.Argument(metavar="JOB.TOML", help="The job: source, workload, queries and sink.")]
Sets = Annotated[
    list[str],
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Change a value of the job; may be given several times."),
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="Where Spark runs, as in local[4].")]
Confs = Annotated[list[str], typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; several times.")]
Packages = Annotated[
    list[str], typer.Option(metavar="GROUP:NAME:VERSION", help="Packages for Spark, from Maven; several times.")
]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show the whole traceback of a job that fails.")]


@app.callback(invoke_without_command=True)
def slicewise(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    if version:
        from slicewise import __version__

        typer.echo(f"slicewise {__version__}")
        raise typer.Exit


@app.command(
    short_help="Run a job.", help="Run a job: a batch to its end, a stream until it ends or Ctrl-C stops it.\n" + _CODES
)
def run(
    file: JobFile,
    sets: Sets = [],  # noqa: B006
    master: Master = None,
    conf: Confs = [],  # noqa: B006
    packages: Packages = [],  # noqa: B006
    show_traceback: Traceback = False,
) -> None:
    job = _job(file, sets)
    settings = dict(_setting(said) for said in conf)
    named = tuple(name for said in packages for name in said.split(",") if name)
    # Windows that only count rows go with either, and then Spark says which it is.
    timestamps = job.workload.unit is not None or job.workload.needs_unit
    with _reporting(show_traceback), Status(_errors(), timestamps=timestamps) as status:
        status.doing("starting Spark")
        with filtered(status.say):
            spark = open_session(job, master, settings, named)
        try:
            ended = _run(job, spark, status)
        finally:
            status.quiet()
            spark.stop()
    if not ended:
        raise typer.Exit(INTERRUPTED)


def _run(job: Job, spark: object, status: Status) -> bool:
    """Run the job on a session; False when it was stopped."""
    status.doing(f"running {job.name}: {job.source} to {job.sink}")
    df = job.workload.run(read_source(spark, job.source), **job.results)
    df = flattened(df) if job.sink.flatten else df
    if not job.source.stream:
        run_batch(spark, df, job.sink, status)
        status.say(f"done: {job.name} wrote {job.sink}")
        return True
    with stopping() as stop:
        ended = follow(start_stream(df, job), status, stop, before_stop=lambda: hush(spark))
    status.quiet()
    said = f"{count(status.rows)} rows in {status.batches} {'batch' if status.batches == 1 else 'batches'}"
    said += f", {count(status.late)} of them too late for every window" if status.late else ""
    if ended:
        status.say(f"done: {job.name} wrote {job.sink}; {said}")
    else:
        status.say(f"stopped: {said}; run the same command to resume from the checkpoint {job.sink.checkpoint}")
    return ended


@app.command(
    short_help="Show what is decided about a job, and why.",
    help="Show what a job is, what is decided about it and why. Needs neither Spark nor Java.\n" + _CODES,
)
def explain(file: JobFile, sets: Sets = []) -> None:  # noqa: B006
    job = _job(file, sets)
    typer.echo(f"{job.name}: {job.source} to {job.sink}\n")
    typer.echo(job.workload.explain())


@app.command(
    short_help="Find every mistake in a job file.",
    help="Find every mistake in a job file. Needs neither Spark nor Java.\n" + _CODES,
)
def check(file: JobFile, sets: Sets = []) -> None:  # noqa: B006
    job = _job(file, sets)
    n = len(job.workload.queries)
    typer.echo(f"{job.file} is fine: {job.source}, {n} {'query' if n == 1 else 'queries'}, to {job.sink}")


@app.command(
    short_help="Show what the checkpoint of a stream holds.",
    help="Show what is kept in the checkpoint of a stream: shards, keys, slices, watermark, queries.\n" + _CODES,
)
def inspect(
    checkpoint: Annotated[str, typer.Argument(help="The folder that the job names as its checkpoint.")],
    show_traceback: Traceback = False,
) -> None:
    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        _refuse([Mistake(checkpoint, "there is no such folder; give the checkpoint of a stream, as its job names it")])
    with _reporting(show_traceback):
        from slicewise.spark import inspect as look

        with filtered(lambda line: typer.echo(line, err=True)):
            found = look(checkpoint)
        typer.echo(str(found))


@app.command(
    short_help="Pack slicewise for the workers of a cluster.",
    help="Write slicewise as a zip file, for spark-submit --py-files on a cluster whose workers have NumPy, Arrow and, "
    "for streams, pandas and protobuf. Needs neither Spark nor Java.\n" + _CODES,
)
def package(
    file: Annotated[Path, typer.Argument(help="The zip file, or the folder to put it in.")] = Path("slicewise.zip"),
) -> None:
    from slicewise import __version__

    path = file / "slicewise.zip" if file.is_dir() else file
    if path.suffix != ".zip":
        _refuse([Mistake(str(path), "Spark takes a package by the ending of its file; expected one that ends in .zip")])
    try:
        n = write_archive(path)
    except OSError as e:
        _refuse([Mistake(str(path), f"this cannot be written: {e.strerror or e}")])
    typer.echo(
        f"{path} has slicewise {__version__}, {n} files; spark-submit --py-files {shlex.quote(str(path))} job.py"
    )


@app.command(
    short_help="Look at the installation.",
    help="Is everything here that jobs on Spark need? Says what is wrong and the command that mends it.\n" + _CODES,
)
def doctor() -> None:
    console = Console(highlight=False, soft_wrap=True)
    findings = doctors.examine()
    width = max(len(f.name) for f in findings)
    for found in findings:
        mark = "[green]ok   [/green]" if found.ok else "[red]wrong[/red]"
        console.print(f"{mark}  {found.name:{width}}  {escape(found.said)}")
        if found.fix is not None:
            console.print(f"{'':{width + 9}}{escape(found.fix)}")
    wrong = sum(not f.ok for f in findings)
    if wrong:
        console.print(f"{wrong} of {len(findings)} need mending")
        raise typer.Exit(FAILED)
    console.print("all is well")


@app.command(
    short_help="Run a dashboard over a made-up stream.",
    help="Run a dashboard over a made-up football match as a Spark stream: six queries at once.\n" + _CODES,
)
def demo(
    rows: Annotated[int, typer.Option(min=1000, max=10_000_000, help="How many positions.")] = 400_000,
    folder: Annotated[Path, typer.Option(help="Where everything that it makes is put.")] = Path("slicewise-demo"),
    sliding_rows: Annotated[
        int, typer.Option(min=0, max=100_000_000, help="Over how many rows Spark and slicewise slide at the end.")
    ] = 5_000_000,
) -> None:
    with _reporting(False):
        football_demo.run(Console(highlight=False, soft_wrap=True), _errors(), rows, folder, sliding_rows)


@app.command(
    short_help="Run a benchmark by its name, or list them.",
    help="Run a benchmark of a source checkout by its name; without a name, list them. What follows -- is for it.\n"
    + _CODES,
)
def bench(
    name: Annotated[str | None, typer.Argument(help="The benchmark, as in engine.")] = None,
    arguments: Annotated[list[str], typer.Argument(help="For the benchmark, after --.")] = [],  # noqa: B006
) -> None:
    folder = benchmarks.folder()
    if folder is None:
        typer.echo(benchmarks.WHERE, err=True)
        raise typer.Exit(FAILED)
    if name is None:
        typer.echo("\n".join(f"{bench}  {says}" for bench, says in benchmarks.listed(folder)))
        return
    if name not in dict(benchmarks.listed(folder)):
        _refuse([Mistake(name, benchmarks.unknown(folder, name))])
    raise typer.Exit(FAILED if benchmarks.run(folder, name, arguments) else 0)


def _job(file: str, sets: list[str]) -> Job:
    try:
        return read_job(file, sets)
    except JobError as e:
        _refuse(e.mistakes)


def _setting(said: str) -> tuple[str, str]:
    key, equals, value = said.partition("=")
    if not equals or not key.strip():
        _refuse([Mistake(f"--conf {said}", "expected key=value, as in --conf spark.driver.memory=2g")])
    return key.strip(), value


def _errors() -> Console:
    """The error output for a status, which stays where it is while that of other programs is filtered."""
    if sys.stderr is not sys.__stderr__ or sys.stderr is None:
        return Console(stderr=True, highlight=False)
    own = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace", buffering=1)
    return Console(file=own, highlight=False)


def _refuse(mistakes: list[Mistake] | tuple[Mistake, ...]) -> NoReturn:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for mistake in mistakes:
        first, *rest = str(mistake).split("\n")
        console.print(f"[bold]{escape(first)}[/bold]" if console.is_terminal else escape(first))
        for line in rest:
            console.print(escape(line))
    if len(mistakes) > 1:
        console.print(f"{len(mistakes)} mistakes")
    raise typer.Exit(MISTAKEN)


@contextlib.contextmanager
def _reporting(show_traceback: bool) -> Iterator[None]:
    """Turn what goes wrong into a message and an exit code."""
    try:
        yield
    except (typer.Exit, SystemExit):
        raise
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of the pipe has gone; what Python still wants to write there goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
    except Exception as e:
        if show_traceback:
            traceback.print_exc()
        said = str(e) if isinstance(e, SlicewiseError) else brief(e)
        said += "; `slicewise doctor` looks at everything that is needed" if isinstance(e, MissingPackageError) else ""
        typer.echo(f"error: {said}", err=True)
        if not show_traceback and not isinstance(e, SlicewiseError):
            typer.echo("--traceback shows everything; `slicewise doctor` looks at the installation", err=True)
        raise typer.Exit(FAILED) from None
