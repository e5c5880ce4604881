"""slicewise beside what people would use instead: Spark's windows and frames, Flink SQL, Polars, DuckDB and others.

    python benchmarks/peers.py [--rows N] [--only CASE ...] [--flink PYTHON] [--save FILE] [--page docs/peers.md]

One run, the same rows: 16 keys, a row every millisecond, in a Parquet file that each reads in its own way. Ways are
taken in turns, and every answer is compared before a time is reported: the number of complete windows, the sum of their
sums, and a sum that depends on which window has which. What is not installed is named and left out. Bytewax takes rows
one by one in Python, and gets a twentieth of them.

Flink's pins do not go with those of others: ``--flink`` (or SLICEWISE_FLINK) names an interpreter that has
``apache-flink``, such as ``build/flink/bin/python`` after ``make flink``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _harness import ROOT, Spread, arguments, clock, environment, heading, load, save
from rivals import WAYS, Way, flink, in_process
from rivals.page import LONG, VERY_LONG, busy, draw, sentence, update_readme, write_page
from rivals.rows import CASES, Case, Digest, Rows, write_rows


def measure(rows: int, only: list[str], repeat: int, skip: list[str]) -> Iterator[dict[str, Any]]:
    """All cases, ways in turns."""
    ways = {name: way for name, way in WAYS.items() if not any(part in name for part in skip)}
    for name, way in list(ways.items()):
        if way.absent:
            print(f"{name}: {way.absent}, left out")
            del ways[name]
    with tempfile.TemporaryDirectory() as folder:
        tables = {share: write_rows(Path(folder), rows // share) for share in {way.share for way in WAYS.values()}}
        for case in CASES.values():
            if not only or any(part in case.name for part in only):
                yield from _one_case(case, ways, tables, repeat)


def _one_case(case: Case, ways: dict[str, Way], tables: dict[int, Rows], repeat: int) -> Iterator[dict[str, Any]]:
    made = {name: way.make(tables[way.share], case) for name, way in ways.items()}
    attempts = {name: attempt for name, attempt in made.items() if attempt is not None}
    expected = {share: _expected(tables[share], case) for share in {ways[name].share for name in attempts}}
    seconds: dict[str, list[float]] = {name: [] for name in attempts}
    for turn in range(repeat + 1):
        for name, attempt in attempts.items():
            if turn == 0:
                # Its answer is compared, and it warms up, unless it takes so long that starting does not show.
                found: dict[str, Any] = {}
                seconds[name].append(clock(lambda attempt=attempt, found=found: found.update(it=attempt.windows())))
                share = ways[name].share
                _check(case, name, tables[share].digest(found["it"], case), expected[share])
            elif min(seconds[name]) <= (VERY_LONG if turn == 1 else LONG):
                seconds[name] = [*(seconds[name] if turn > 1 else []), clock(attempt.run)]
    for name, taken_all in seconds.items():
        spread, n = Spread.of(taken_all), tables[ways[name].share].n
        print(
            f"  {case.name:<22} {name:<24} {spread.median:8.2f} s  {n / spread.median / 1e6:8.2f} M rows/s", flush=True
        )
        line = {"case": case.name, "way": name, "rows": n}
        yield {**line, "seconds": spread.median, "low": spread.low, "high": spread.high, **_scan(case, name, n, repeat)}


def _expected(rows: Rows, case: Case) -> Digest:
    return rows.digest(in_process.slicewise(rows, case).windows(), case)


def _check(case: Case, name: str, digest: Digest, expected: Digest) -> None:
    if digest != expected:
        raise SystemExit(f"{case.name}: {name} says {digest}, slicewise {expected}")


def _scan(case: Case, name: str, rows: int, repeat: int) -> dict[str, float]:
    """With the first case of Flink, what of its time goes into making rows."""
    if not name.startswith("Flink") or case.name != next(iter(CASES)):
        return {}
    return {"scan": Spread.of(flink.scan_seconds(name.split(", ")[1], rows, repeat)).median}


def _here() -> dict[str, Any]:
    here = environment()
    if flink.interpreter():
        here["versions"]["apache-flink"] = flink.version()
    return here


def main(given: list[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], help="cases whose name holds one of these")
    parser.add_argument("--skip", nargs="+", default=[], help="ways whose name holds one of these")
    parser.add_argument("--flink", help="an interpreter that has apache-flink")
    parser.add_argument("--page", type=Path, help="write the page, from this run or from the file of --read")
    parser.add_argument("--readme", type=Path, help="write README's lines, too")
    parser.add_argument("--read", type=Path, help="measure nothing, read what was saved")
    options = parser.parse_args(given)
    if options.flink:
        os.environ["SLICEWISE_FLINK"] = options.flink
    if options.read:
        found, where = load(options.read), json.loads(options.read.read_text(encoding="utf-8"))["environment"]
    else:
        where = _here()
        print(heading(rows=options.rows))
        found = []
        for line in measure(options.rows, options.only, options.repeat, options.skip):
            found.append(line)
            save(options.save, found, where)
    if options.page:
        write_page(options.page, found, where)
        if draw(found, ROOT / "benchmarks" / "results" / "peers.png"):
            print(sentence(found))
    if options.readme and busy(where):
        print(f"{options.readme} stays as it is: the machine was busy, under a load of {where['load']:g}")
    elif options.readme:
        update_readme(options.readme, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
