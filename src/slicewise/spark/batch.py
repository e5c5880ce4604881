"""Batch: a workload on a DataFrame. Each query takes its route; the results of all come out as one DataFrame."""

from __future__ import annotations

import dataclasses
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slicewise.plan.panels import Form
from slicewise.plan.plan import plan_for, tie_columns
from slicewise.plan.routes import ROWS, choose_shuffle, route_of
from slicewise.spark.computed_columns import with_data
from slicewise.spark.output import check_known_types, describe
from slicewise.spark.row_route import run_rows
from slicewise.spark.slice_route import run_slices
from slicewise.spark.source import Source, column

__all__ = ["run_batch"]


def run_batch(
    source: Source, shuffle: str | None = None, store: str | None = None, form: Form | None = None
) -> DataFrame:
    """The results of a workload over a batch DataFrame.

    ``shuffle`` is brought together by key, and ``store`` answers windows, if it is not what the plan chooses.
    """
    workload, form = source.workload, Form() if form is None else form
    schema = plan_for(workload, source.types, time_type=source.time_type, form=form).schema
    check_known_types(schema)
    punctuation = workload.punctuation is not None
    routes: dict[tuple[str, bool], list[str]] = {}
    for query in workload.queries:
        route = route_of(query, source.types, punctuation=punctuation).choice
        routes.setdefault((route, punctuation and query.window.sees_punctuation), []).append(query.name)
    if form.wide and len(routes) > 1:  # the values of one row come from one route
        routes = {(ROWS, False): [query.name for query in workload.queries]}
    shuffle = choose_shuffle(workload).choice if shuffle is None else shuffle
    parts = []
    for (route, sees_punctuation), names in sorted(routes.items()):
        restricted = _restricted(source, names)
        restricted = restricted if sees_punctuation else with_data(restricted)
        run = partial(run_rows, restricted) if route == ROWS else partial(run_slices, restricted, shuffle)
        parts.append(run(store, form))
    if len(parts) == 1:
        return parts[0]
    together = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)
    named = {"query": F.col("query").alias("query", metadata=describe(schema))}
    return together.select(*(named.get(name, column(name)) for name in schema.arrow().names))


def _restricted(source: Source, names: list[str]) -> Source:
    """The source for some of the queries only; the columns that break ties are those of all."""
    workload = source.workload
    kept = workload.with_queries(tuple(q for q in workload.queries if q.name in names))
    ties = tie_columns(workload) if tie_columns(kept) else ()
    return dataclasses.replace(source, workload=kept, ties=ties)
