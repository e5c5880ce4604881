"""Result tables: what is true of a workload so far, in a table of a database, kept so by one micro-batch after another.

No Spark in here. A micro-batch is one transaction, and so is the note that it was written: whatever happens in between,
both are there or neither is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slicewise.errors import DataError
from slicewise.spark.databases import Database, identity_text, quoted

__all__ = ["BOUNDS", "IDENTITY", "LongIdentity", "ResultTable", "WideIdentity"]

BOUNDS = ("window_start", "window_end", "span_start", "span_end")
#: The column by which rows are known where an index does not take nulls for equal.
IDENTITY = "slicewise_identity"
#: Which micro-batch of which stream was the last to be written.
BATCHES = "slicewise_batches"
#: The bounds that tell windows on time apart. A window on rows or units is known by its span, since late rows move its
#: times: ``latest`` folds results in the same way.
_TIMES = [f"CASE WHEN {quoted('span_start')} IS NULL THEN {quoted(bound)} END" for bound in BOUNDS[:2]]


class LongIdentity:
    """By what rows of the long shape are known: query and bounds, beside the keys."""

    #: The columns that such results have.
    columns = ("query", *BOUNDS)
    #: What no two rows of a key have in common, as an index has it.
    indexed = [*map(quoted, ("query", *BOUNDS[2:])), *(f"({time})" for time in _TIMES)]  # noqa: RUF012
    #: Of what one row is shown for each key, and which of them is the latest.
    shown_for = ("query",)
    latest_first = ("window_end", "span_end", "window_start")

    @staticmethod
    def of(row: Mapping[str, Any]) -> list[Any]:
        """The values that say which window it is."""
        bounds = BOUNDS[2:] if row["span_start"] is not None else BOUNDS[:2]
        return [row[name] for name in ("query", *bounds)]

    @staticmethod
    def stored(row: Mapping[str, Any]) -> list[Any]:
        """The values of what is indexed."""
        times = [row[bound] if row["span_start"] is None else None for bound in BOUNDS[:2]]
        return [*(row[name] for name in ("query", *BOUNDS[2:])), *times]


class WideIdentity:
    """By what rows of the wide shape are known: their end, beside the keys."""

    columns = latest_first = ("end",)
    indexed = [quoted("end")]  # noqa: RUF012
    shown_for: tuple[str, ...] = ()

    @staticmethod
    def of(row: Mapping[str, Any]) -> list[Any]:
        """The values that say which row it is."""
        return [row["end"]]

    stored = of


@dataclass(frozen=True)
class ResultTable:
    """A table with the results of a workload that hold.

    Attributes
    ----------
    database
        Where it is.
    name
        What it is called there.
    keys
        The keys of the workload.
    latest
        Whether only the row with the latest end is shown for each key and query. All are kept, in a table beside it:
        when the latest is withdrawn, the one before it holds again.
    identity
        By what rows are known, beside their keys.
    """

    database: Database
    name: str
    keys: tuple[str, ...]
    latest: bool = False
    identity: type[LongIdentity] | type[WideIdentity] = LongIdentity

    def write(self, results: pa.Table, stream: str | None, batch: int) -> None:
        """Write the results of a micro-batch, unless they were written before.

        Parameters
        ----------
        results
            Keys, the columns of the identity, ``change``, ``revision``, and columns of values.
        stream
            Which stream it is, for as long as that has its checkpoint; None if nobody knows. Then a micro-batch that is
            repeated is written again, which changes nothing either.
        batch
            The number of the micro-batch.
        """
        connection = self.database.connect()
        try:
            if stream is None or self._is_next(connection, stream, batch):
                self._prepare(connection, results.schema)
                self._apply(connection, results)
            connection.commit()
        finally:
            connection.close()

    # -- which micro-batches are done

    def _is_next(self, connection: Any, stream: str, batch: int) -> bool:
        """Whether a micro-batch has not been written; from now on it has."""
        batches, mark = self._beside(BATCHES), self.database.mark
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {batches} "
            "(result_table text, stream text, batch bigint, PRIMARY KEY (result_table, stream))"
        )
        who = [self.name, stream]
        written = connection.execute(
            f"SELECT batch FROM {batches} WHERE result_table = {mark} AND stream = {mark}", who
        ).fetchone()
        if written is not None and batch <= written[0]:
            return False
        connection.execute(
            f"INSERT INTO {batches} VALUES ({mark}, {mark}, {mark}) "
            "ON CONFLICT (result_table, stream) DO UPDATE SET batch = excluded.batch",
            [*who, batch],
        )
        return True

    # -- the table

    @property
    def _stored(self) -> str:
        return self.database.qualified(f"{self.name}_history" if self.latest else self.name)

    def _beside(self, name: str) -> str:
        """Another name in the schema of the table."""
        schema, point, _ = self.name.rpartition(".")
        return self.database.qualified(f"{schema}{point}{name}")

    @property
    def _known_by(self) -> list[str]:
        """What no two rows have in common, as an index has it."""
        if not self.database.nulls_are_equal:
            return [quoted(IDENTITY)]
        return [*map(quoted, self.keys), *self.identity.indexed]

    def _prepare(self, connection: Any, schema: pa.Schema) -> None:
        """Make the table, or add the columns of queries that are new."""
        there = self._columns_there(connection)
        columns = {field.name: field.type for field in schema if field.name != "change"}
        if not self.database.nulls_are_equal:
            columns[IDENTITY] = pa.string()
        types = {name: f"{quoted(name)} {self.database.type_of(type_)}" for name, type_ in columns.items()}
        added = [name for name in columns if name not in there]
        if not there:
            connection.execute(f"CREATE TABLE {self._stored} ({', '.join(types.values())})")
            nulls = " NULLS NOT DISTINCT" if self.database.nulls_are_equal else ""
            bare = f"{self.name.rpartition('.')[2]}{'_history' if self.latest else ''}"
            index = quoted(f"{bare}_windows")
            connection.execute(f"CREATE UNIQUE INDEX {index} ON {self._stored} ({', '.join(self._known_by)}){nulls}")
        else:
            for name in added:
                connection.execute(f"ALTER TABLE {self._stored} ADD COLUMN {types[name]}")
        if self.latest and added:
            self._show_latest(connection, [*there, *added])

    def _columns_there(self, connection: Any) -> list[str]:
        there = self.database.columns_of(connection, self._stored)
        shown = self.database.columns_of(connection, self.database.qualified(self.name))
        if shown and self.latest != any(shown.values()):
            has, instead = ("all windows", "without") if self.latest else ("the latest windows", "with")
            raise DataError(
                f"{self.name!r} shows {has}; write there {instead} latest=True, or name a table that does not exist yet"
            )
        unequal = [] if self.database.nulls_are_equal else [IDENTITY]
        fixed = [*self.keys, *self.identity.columns, "revision", *unequal]
        for name in fixed:
            if there and name not in there:
                raise DataError(
                    f"the table {self.name!r} has no column {name!r}, and so is not one of this workload's results; "
                    "name a table that does not exist yet"
                )
        return list(there)

    def _show_latest(self, connection: Any, names: Sequence[str]) -> None:
        view = self.database.qualified(self.name)
        shown = ", ".join(quoted(name) for name in names if name != IDENTITY)
        key = ", ".join(map(quoted, (*self.keys, *self.identity.shown_for)))
        partition = f"PARTITION BY {key} " if key else ""
        order = ", ".join(f"{quoted(b)} DESC NULLS FIRST" for b in self.identity.latest_first)
        number = "slicewise_number"
        connection.execute(f"DROP VIEW IF EXISTS {view}")
        connection.execute(
            f"CREATE VIEW {view} AS SELECT {shown} FROM (SELECT {shown}, row_number() OVER "
            f"({partition}ORDER BY {order}) AS {number} FROM {self._stored}) AS numbered WHERE {number} = 1"
        )

    # -- its rows

    def _apply(self, connection: Any, results: pa.Table) -> None:
        rows = self._last_of_each(results)
        stored = [name for name in results.column_names if name != "change"]
        writers = [self.database.writer(results.schema.field(name).type) for name in stored]
        written: list[list[Any]] = []
        withdrawn: list[list[Any]] = []
        for identity, row in rows.items():
            values = [None if row[n] is None else write(row[n]) for n, write in zip(stored, writers, strict=True)]
            if not self.database.nulls_are_equal:
                values.append(identity)
            (withdrawn if row["change"] == "retract" else written).append(values)
        if not self.database.nulls_are_equal:
            stored.append(IDENTITY)
        cursor = connection.cursor()
        if written:
            cursor.executemany(self._upsert(stored), written)
        for statement, known in self._deletions(stored, withdrawn):
            cursor.executemany(statement, known)

    def _last_of_each(self, results: pa.Table) -> dict[str, dict[str, Any]]:
        """The row of the largest revision of each window, by which window it is."""
        rows: dict[str, dict[str, Any]] = {}
        for row in results.to_pylist():
            identity = identity_text([*(row[name] for name in self.keys), *self.identity.of(row)])
            before = rows.get(identity)
            if before is None or row["revision"] >= before["revision"]:
                rows[identity] = row
        return rows

    def _upsert(self, stored: Sequence[str]) -> str:
        names = [self._in_statement(quoted(name)) for name in stored]
        known_by = ", ".join(map(self._in_statement, self._known_by))
        return (
            f"INSERT INTO {self._in_statement(self._stored)} ({', '.join(names)}) "
            f"VALUES ({', '.join([self.database.mark] * len(names))}) "
            f"ON CONFLICT ({known_by}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names)}"
        )

    def _deletions(self, stored: Sequence[str], rows: Sequence[list[Any]]) -> list[tuple[str, list[list[Any]]]]:
        """Statements that an index answers, with their rows: whether a column is null stands in the statement."""
        statements: dict[str, list[list[Any]]] = {}
        for row in rows:
            values = dict(zip(stored, row, strict=True))
            if self.database.nulls_are_equal:
                known = [*(values[name] for name in self.keys), *self.identity.stored(values)]
            else:
                known = [values[IDENTITY]]
            tests = [
                f"{self._in_statement(name)} " + ("IS NULL" if value is None else f"= {self.database.mark}")
                for name, value in zip(self._known_by, known, strict=True)
            ]
            statement = f"DELETE FROM {self._in_statement(self._stored)} WHERE {' AND '.join(tests)}"
            statements.setdefault(statement, []).append([value for value in known if value is not None])
        return list(statements.items())

    def _in_statement(self, name: str) -> str:
        """A name beside marks: where those begin with a percent sign, one in a name is written twice."""
        return name.replace("%", "%%") if self.database.mark == "%s" else name
