"""Sketches: are estimates within their stated error, however the values were cut into slices?

    python benchmarks/sketches.py --seeds 100        make sketches

For each seed a million values, cut at random places into 1, 60 and 1000 slices, whose partials are merged in groups and
then together: the relative error of distinct counts, the error in rank of percentiles, the error of counts of frequent
values. Prints errors as shares of the stated one: their root mean square for each way of cutting, the largest of them,
and how many are outside. What is stated is one of three things, and the run fails where it does not hold:

- a *standard error*, of distinct counts: the root mean square over seeds is no more, and hardly any estimate is three
  times as far off. One of three is further off than the standard error itself, which is no fault.
- an error in rank *with 99 % confidence*: one of a hundred may be outside.
- a *bound*: none may.

It also fails if a theta sketch is another one when the same values are cut otherwise. Seeds are shared out to
processes; a hundred take about ten minutes of one core.
"""

from __future__ import annotations

import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
from _harness import arguments, save

import slicewise as sw
from slicewise.columns import Column

CUTS = (1, 60, 1000)
SHARES = (0.01, 0.5, 0.99)
#: The errors that are stated: relative ones of distinct counts, those in rank, and those of counts as a share of rows.
RSD, ACCURACY, RANK_ERROR, TOO_LARGE = (0.01, 0.05), (100, 1000), 0.0133, 3.5 / 1024


def lowered(aggregate: sw.Aggregate, values: np.ndarray, starts: np.ndarray) -> Any:
    """The answer over all values, from the partials of slices that begin at these places."""
    monoid = aggregate.bind(pa.int64())
    parts = monoid.lift_fold([Column.of(values)], np.arange(len(values)), starts)
    groups = np.arange(0, len(starts), math.isqrt(len(starts)))
    return monoid.lower(monoid.fold(monoid.fold(parts, groups), np.zeros(1, np.int64))).to_pylist()[0]


def random_starts(rng: np.random.Generator, n: int, cuts: int) -> np.ndarray:
    """Where so many slices of n values begin."""
    return np.append(0, np.sort(rng.choice(np.arange(1, n), cuts - 1, replace=False)))


def errors(seed: int, n: int) -> dict[tuple[str, int], list[float]]:
    """The errors of one seed by name and number of slices, as shares of what is stated."""
    rng = np.random.default_rng(seed)
    # Other values for each seed: sketches hash them, and of the same values the errors would always be the same.
    values = rng.integers(0, 2**53, n // 3)[rng.integers(0, n // 3, n)]
    skewed = rng.zipf(1.3, n) % n
    found: dict[tuple[str, int], list[float]] = {}
    thetas = set()
    for cuts in CUTS:
        starts = random_starts(rng, n, cuts)
        theta = lowered(sw.theta_sketch_agg("v"), values, starts)
        thetas.add(theta)
        for name, error in (
            *distinct_errors(values, starts, theta),
            *rank_errors(values, starts),
            *frequency_errors(skewed, starts),
        ):
            found.setdefault((name, cuts), []).append(error)
    if len(thetas) != 1:
        raise SystemExit(f"seed {seed}: the theta sketch depends on how the values were cut")
    return found


def distinct_errors(values: np.ndarray, starts: np.ndarray, theta: bytes) -> list[tuple[str, float]]:
    """How far estimates of the number of different values are off."""
    distinct = len(np.unique(values))
    hll = lowered(sw.hll_sketch_agg("v"), values, starts)
    estimates = {
        f"approx_count_distinct(rsd={rsd})": (lowered(sw.approx_count_distinct("v", rsd), values, starts), rsd)
        for rsd in RSD
    }
    estimates["hll_sketch_agg(12)"] = datasketches.hll_sketch.deserialize(hll).get_estimate(), 1.04 / math.sqrt(2**12)
    compact = datasketches.compact_theta_sketch.deserialize(theta)
    estimates["theta_sketch_agg(12)"] = compact.get_estimate(), 1 / math.sqrt(2**12)
    return [(name, abs(estimate / distinct - 1) / stated) for name, (estimate, stated) in estimates.items()]


def rank_errors(values: np.ndarray, starts: np.ndarray) -> list[tuple[str, float]]:
    """How far the ranks of estimated percentiles are off."""
    ordered = np.sort(values)
    estimates = {
        f"approx_percentile(accuracy={a})": (lowered(sw.approx_percentile("v", SHARES, a), values, starts), 1 / a)
        for a in ACCURACY
    }
    kll = datasketches.kll_doubles_sketch.deserialize(lowered(sw.kll_sketch_agg_double("v"), values, starts))
    estimates["kll_sketch_agg_double(200)"] = kll.get_quantiles(list(SHARES), True), RANK_ERROR
    found = []
    for name, (answers, stated) in estimates.items():
        low, high = (np.searchsorted(ordered, answers, side) / len(values) for side in ("left", "right"))
        off = np.maximum(np.maximum(low - SHARES, SHARES - high), 0.0) / stated
        found += [(name, error) for error in off.tolist()]
    return found


def frequency_errors(values: np.ndarray, starts: np.ndarray) -> list[tuple[str, float]]:
    """How far counts of frequent values are off: too large by so much, and never too small."""
    counts = np.bincount(values)
    top = lowered(sw.approx_most_frequent("v", 10), values, starts)
    over = [(item["count"] - counts[item["value"]]) / (TOO_LARGE * len(values)) for item in top]
    return [("approx_most_frequent(10)", math.inf if min(over) < 0 else max(over))]


@dataclass(frozen=True)
class Stated:
    """What is said about an error, and how much chance may add to it in a hundred seeds."""

    #: Where it is a standard error, the largest root mean square: of a hundred errors it varies by 7 %.
    root_mean_square: float
    #: Errors are counted as outside from here, and so many may be.
    bound: float
    outside: float


STANDARD_ERROR = Stated(1.2, 3.0, 0.02)
CONFIDENCE = Stated(math.inf, 1.0, 0.03)
BOUND = Stated(math.inf, 1.0, 0.0)
STATED = {
    "approx_count_distinct": STANDARD_ERROR,
    "hll_sketch_agg": STANDARD_ERROR,
    "theta_sketch_agg": STANDARD_ERROR,
    "approx_percentile": CONFIDENCE,
    "kll_sketch_agg_double": CONFIDENCE,
    "approx_most_frequent": BOUND,
}


def report(found: dict[str, dict[int, list[float]]]) -> bool:
    """Print errors by name and number of slices, as shares of the stated one; whether all are as stated."""
    print(
        f"{'errors as shares of the stated one':<33} {'root mean square, of slices':>27} {'largest':>9} {'outside':>11}"
    )
    print(f"{'':<33}{''.join(f'{cuts:>9}' for cuts in CUTS)}")
    good = True
    for name, by_cuts in found.items():
        stated = STATED[name.partition("(")[0]]
        spread = [math.sqrt(np.mean(np.square(by_cuts[cuts]))) for cuts in CUTS]
        every = np.concatenate([by_cuts[cuts] for cuts in CUTS])
        outside = float(np.mean(every > stated.bound + 1e-9))
        as_stated = max(spread) <= stated.root_mean_square and outside <= stated.outside
        shown = f"{''.join(f'{s:>9.2f}' for s in spread)} {every.max():>10.2f} {outside:>7.1%} of {stated.bound:.0f}"
        print(f"{name:<33}{shown}  {'as stated' if as_stated else 'MORE THAN STATED'}")
        good &= as_stated
    return good


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    found: dict[str, dict[int, list[float]]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for seed, of_seed in enumerate(pool.map(partial(errors, n=options.rows), range(options.seeds))):
            for (name, cuts), some in of_seed.items():
                found.setdefault(name, {}).setdefault(cuts, []).extend(some)
            if sys.stderr.isatty():
                print(f"\r{seed + 1} seeds", end="\r", file=sys.stderr)
            save(options.save, {"seeds": seed + 1, "rows": options.rows, "errors": found})
    print(f"{options.seeds} seeds, {options.rows:,} values each, cut into {', '.join(map(str, CUTS))} slices")
    good = report(found)
    print("theta sketches are the same however the values were cut")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
