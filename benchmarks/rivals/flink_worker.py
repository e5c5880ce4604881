"""Runs in the interpreter that has Flink: ``flink_worker.py MODE`` reads requests, a JSON line each, and answers them.

A request names a table, a query and perhaps where to save its windows; the answer is the seconds of the query, results
going into a sink that forgets them, or while they are saved.
"""

import json
import sys
import time

import numpy as np
from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "false",
}


def environment(mode):
    """Flink in this process, two tasks, objects used again."""
    settings = Configuration()
    for name, value in SETTINGS.items():
        settings.set_string(name, value)
    made = EnvironmentSettings.new_instance().with_configuration(settings)
    return TableEnvironment.create((made.in_batch_mode() if mode == "batch" else made.in_streaming_mode()).build())


class Worker:
    """Answers requests; knows which tables and sinks there are."""

    def __init__(self, mode):
        self.tables = environment(mode)
        self.made = set()

    def answer(self, request):
        if request["table"] not in self.made:
            self.tables.execute_sql(request["table"])
            self.made.add(request["table"])
        query = self.tables.sql_query(request["query"])
        started = time.perf_counter()
        if "save" in request:
            start, end, total = (column.to_numpy() for _, column in query.to_pandas().items())
            windows = [bound.astype("datetime64[us]").astype(np.int64) for bound in (start, end)]
            np.save(request["save"], np.array([*windows, total.astype(np.int64)]))
        else:
            query.execute_insert(self.sink(query)).wait()
        return {"seconds": time.perf_counter() - started}

    def sink(self, query):
        """A sink that forgets rows such as those of a query."""
        schema = query.get_resolved_schema()
        columns = list(zip(schema.get_column_names(), schema.get_column_data_types(), strict=True))
        kind = "_".join(["hole", *(name.lower().replace("$", "_") for name, _ in columns)])
        if kind not in self.made:
            listed = ", ".join(f"`{name}` {_sql_type(data)}" for name, data in columns)
            self.tables.execute_sql(f"create temporary table `{kind}` ({listed}) with ('connector' = 'blackhole')")
            self.made.add(kind)
        return kind


def _sql_type(data):
    name = type(data).__name__
    return {"TimestampType": "timestamp(3)", "LocalZonedTimestampType": "timestamp_ltz(3)"}.get(name, "bigint")


def main(mode):
    worker = Worker(mode)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as problem:  # whatever Java says is for the one who asked
            answer = {"error": str(problem)[:2000]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
