"""Commands: the commands of ``slicewise``. Each reads its arguments, calls the module for the work, and reports."""

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
from slicewise.cli.diagnostics import Diagnostic
from slicewise.cli.doctor import examine, examine_workers
from slicewise.cli.job_runner import (
    computed,
    flattened,
    follow,
    open_session,
    run_batch,
    short_error,
    silence_logs,
    start_stream,
    stopping,
)
from slicewise.cli.jobs import Job, JobError, read_job
from slicewise.cli.status import Status, count
from slicewise.cli.stderr_filter import filtered
from slicewise.errors import MissingPackageError, SlicewiseError

__all__ = ["app"]

FAILED, INVALID_INPUT, INTERRUPTED = 1, 2, 130
_CODES = """
Exit codes: 0 everything went well; 1 the job or a check failed; 2 there are mistakes in the input;
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
Confs = Annotated[
    list[str], typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be given several times.")
]
Packages = Annotated[
    list[str],
    typer.Option(metavar="GROUP:NAME:VERSION", help="Packages for Spark, from Maven; may be given several times."),
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
    settings = dict(_setting(option) for option in conf)
    package_names = tuple(name for option in packages for name in option.split(",") if name)
    # Windows that only count rows fit integer time and timestamps alike; Spark then tells which it is.
    timestamps = job.workload.unit is not None or job.workload.needs_unit
    with _reporting(show_traceback), Status(_errors(), timestamps=timestamps) as status:
        status.doing("starting Spark")
        with filtered(status.line):
            spark = open_session(job, master, settings, package_names)
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
    df = computed(spark, job)
    df = flattened(df) if job.sink.flatten else df
    if not job.source.stream:
        run_batch(spark, df, job.sink, status)
        status.line(f"done: {job.name} wrote {job.sink}")
        return True
    with stopping() as stop:
        ended = follow(start_stream(df, job), status, stop, before_stop=lambda: silence_logs(spark))
    status.quiet()
    summary = f"{count(status.rows)} rows in {status.batches} {'batch' if status.batches == 1 else 'batches'}"
    summary += f", {count(status.late)} of them too late for every window" if status.late else ""
    if ended:
        status.line(f"done: {job.name} wrote {job.sink}; {summary}")
    else:
        status.line(f"stopped: {summary}; run the same command to resume from the checkpoint {job.sink.checkpoint}")
    return ended


@app.command(
    short_help="Show how a job is run, and why.",
    help="Show a job, the decisions about how it is run, and the reasons. Needs neither Spark nor Java.\n" + _CODES,
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
    help="Show what the checkpoint of a stream holds: shards, keys, slices, watermark, queries.\n" + _CODES,
)
def inspect(
    checkpoint: Annotated[str, typer.Argument(help="The folder that the job names as its checkpoint.")],
    show_traceback: Traceback = False,
) -> None:
    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        _refuse(Diagnostic(checkpoint, "there is no such folder; give the checkpoint of a stream, as its job names it"))
    with _reporting(show_traceback):
        from slicewise.spark import inspect as inspect_checkpoint

        with filtered(lambda line: typer.echo(line, err=True)):
            contents = inspect_checkpoint(checkpoint)
        typer.echo(str(contents))


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
        message = "Spark recognizes packages by the ending of the file name; expected one that ends in .zip"
        _refuse(Diagnostic(str(path), message))
    try:
        n = write_archive(path)
    except OSError as e:
        _refuse(Diagnostic(str(path), f"this cannot be written: {e.strerror or e}"))
    typer.echo(
        f"{path} has slicewise {__version__}, {n} files; spark-submit --py-files {shlex.quote(str(path))} job.py"
    )


@app.command(
    short_help="Check the installation.",
    help="Check that everything jobs on Spark need is installed; shows what is wrong and how to fix it.\n" + _CODES,
)
def doctor(
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask the workers of this cluster too, as in spark://host:7077.")
    ] = None,
    remote: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask those of this Spark Connect server, as in sc://host:15002.")
    ] = None,
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if master and remote:
        typer.echo("error: give --master or --remote, not both", err=True)
        raise typer.Exit(INVALID_INPUT)
    findings = examine()
    if master or remote:
        findings += examine_workers(master, remote)
    width = max(len(f.name) for f in findings)
    for finding in findings:
        mark = "[green]ok   [/green]" if finding.ok else "[red]wrong[/red]"
        console.print(f"{mark}  {finding.name:{width}}  {escape(finding.detail)}")
        if finding.fix is not None:
            console.print(f"{'':{width + 9}}{escape(finding.fix)}")
    failed = sum(not f.ok for f in findings)
    if failed:
        console.print(f"{failed} of {len(findings)} checks failed")
        raise typer.Exit(FAILED)
    console.print("all is well")


@app.command(
    short_help="Run a dashboard over a made-up stream.",
    help="Run a dashboard over a made-up football match as a Spark stream: six queries at once.\n" + _CODES,
)
def demo(
    rows: Annotated[int, typer.Option(min=1000, max=10_000_000, help="The number of positions.")] = 400_000,
    folder: Annotated[Path, typer.Option(help="The folder for everything that it writes.")] = Path("slicewise-demo"),
    sliding_rows: Annotated[
        int,
        typer.Option(
            min=0, max=100_000_000, help="The number of rows over which Spark and slicewise are compared at the end."
        ),
    ] = 5_000_000,
) -> None:
    with _reporting(False):
        football_demo.run(Console(highlight=False, soft_wrap=True), _errors(), rows, folder, sliding_rows)


@app.command(
    short_help="Run a benchmark by its name, or list them.",
    help="Run a benchmark of a source checkout by name; without a name, list them. Arguments after -- go to it.\n"
    + _CODES,
)
def bench(
    name: Annotated[str | None, typer.Argument(help="The benchmark, as in engine.")] = None,
    arguments: Annotated[list[str], typer.Argument(help="For the benchmark, after --.")] = [],  # noqa: B006
) -> None:
    folder = benchmarks.folder()
    if folder is None:
        typer.echo(benchmarks.NOT_IN_A_CHECKOUT, err=True)
        raise typer.Exit(FAILED)
    if name is None:
        typer.echo("\n".join(f"{script}  {title}" for script, title in benchmarks.listed(folder)))
        return
    if name not in dict(benchmarks.listed(folder)):
        _refuse(Diagnostic(name, benchmarks.unknown(folder, name)))
    raise typer.Exit(FAILED if benchmarks.run(folder, name, arguments) else 0)


def _job(file: str, sets: list[str]) -> Job:
    try:
        return read_job(file, sets)
    except JobError as e:
        _refuse(*e.diagnostics)


def _setting(option: str) -> tuple[str, str]:
    key, equals, value = option.partition("=")
    if not equals or not key.strip():
        _refuse(Diagnostic(f"--conf {option}", "expected key=value, as in --conf spark.driver.memory=2g"))
    return key.strip(), value


def _errors() -> Console:
    """A copy of the error output for a status, so that it is not filtered with that of other programs."""
    if sys.stderr is not sys.__stderr__ or sys.stderr is None:
        return Console(stderr=True, highlight=False)
    copy = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace", buffering=1)
    return Console(file=copy, highlight=False)


def _refuse(*diagnostics: Diagnostic) -> NoReturn:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for diagnostic in diagnostics:
        first, *rest = str(diagnostic).split("\n")
        console.print(f"[bold]{escape(first)}[/bold]" if console.is_terminal else escape(first))
        for line in rest:
            console.print(escape(line))
    if len(diagnostics) > 1:
        console.print(f"{len(diagnostics)} mistakes")
    raise typer.Exit(INVALID_INPUT)


@contextlib.contextmanager
def _reporting(show_traceback: bool) -> Iterator[None]:
    """Turn exceptions into a message and an exit code."""
    try:
        yield
    except (typer.Exit, SystemExit):
        raise
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of the pipe has gone; whatever Python still writes to it is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
    except Exception as e:
        if show_traceback:
            traceback.print_exc()
        message = str(e) if isinstance(e, SlicewiseError) else short_error(e)
        message += "; `slicewise doctor` checks everything that is needed" if isinstance(e, MissingPackageError) else ""
        typer.echo(f"error: {message}", err=True)
        if not show_traceback and not isinstance(e, SlicewiseError):
            typer.echo("--traceback shows everything; `slicewise doctor` checks the installation", err=True)
        raise typer.Exit(FAILED) from None
