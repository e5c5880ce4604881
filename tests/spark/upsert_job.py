"""A job to be killed: ``python -m tests.spark.upsert_job FOLDER URL`` writes a second micro-batch, and waits to commit.

The folder has the micro-batch, as ``second.arrow``; when all its rows are written, ``written`` is there as well.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.feather as feather

from slicewise.spark.databases import Database, database_of
from slicewise.spark.result_tables import ResultTable

TABLE, KEYS, STREAM = "results", ("k",), "stream"


class Waiting:
    """A connection that never gets to commit."""

    def __init__(self, connection: Any, written: Path) -> None:
        self._connection, self._written = connection, written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        """Say that all is written, and wait for the end."""
        self._written.touch()
        time.sleep(600)


def main(folder: Path, url: str) -> None:
    """Write a micro-batch, but for the end of the transaction."""
    database = database_of(url)
    connect = database.connect
    patched: Database = database
    patched.connect = lambda: Waiting(connect(), folder / "written")  # type: ignore[method-assign]
    ResultTable(patched, TABLE, KEYS).write(feather.read_table(folder / "second.arrow"), STREAM, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
