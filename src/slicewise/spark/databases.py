"""Databases that :func:`slicewise.upsert` writes to, PostgreSQL and SQLite: what each calls a type, and how it speaks.

No Spark in here. A database gives connections, which begin a transaction by themselves and are committed by the caller.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from slicewise.errors import MissingPackageError, QueryError

__all__ = ["Database", "PostgresDatabase", "SqliteDatabase", "database_of", "identity_text", "json_text", "quoted"]


def database_of(url: str) -> Database:
    """The database of a URL.

    >>> database_of("sqlite:///results.db")
    SqliteDatabase('results.db')
    >>> database_of("mysql://user:secret@host/db")
    Traceback (most recent call last):
        ...
    slicewise.errors.QueryError: `url` must begin with postgresql:// or sqlite:///; got 'mysql://...'
    """
    if not isinstance(url, str):
        raise QueryError(f"`url` must be a text; got {type(url).__name__}", parameter="url")
    scheme, colon, place = url.partition("://")
    if colon and scheme in ("postgresql", "postgres"):
        return PostgresDatabase(url)
    if scheme == "sqlite" and place.startswith("/"):
        if place in ("/", "/:memory:"):
            raise QueryError(
                "`url` needs a file, as in 'sqlite:///results.db': a database in memory ends with each micro-batch",
                parameter="url",
            )
        return SqliteDatabase(place[1:])
    # What comes behind the scheme may hold a password.
    shown = f"{scheme}://..." if colon else url
    raise QueryError(f"`url` must begin with postgresql:// or sqlite:///; got {shown!r}", parameter="url")


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it.

    >>> print(quoted('per "hour" and user'))
    "per ""hour"" and user"
    """
    return '"' + name.replace('"', '""') + '"'


def json_text(value: Any) -> str:
    """A value as JSON; what JSON does not have becomes a text.

    >>> json_text({"at": datetime.date(2024, 6, 1), "v": [1.5, float("nan")]})
    '{"at": "2024-06-01", "v": [1.5, "NaN"]}'
    """
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


class Database(ABC):
    """What a table of results needs of a database."""

    #: What stands for a value in a statement.
    mark: str
    #: Whether an index can take nulls for equal; where it cannot, rows are known by a column with their identity.
    nulls_are_equal: bool

    def qualified(self, table: str) -> str:
        """The name of a table as statements have it."""
        return quoted(table)

    @abstractmethod
    def connect(self) -> Any:
        """A connection whose next statement begins a transaction that others wait for."""

    @abstractmethod
    def columns_of(self, connection: Any, table: str) -> dict[str, bool]:
        """The columns of a table or view by name, each with whether it is a view; none if there is no such thing."""

    @abstractmethod
    def type_of(self, type_: pa.DataType) -> str:
        """What a type is called."""

    @abstractmethod
    def writer(self, type_: pa.DataType) -> Callable[[Any], Any]:
        """How a Python value that is not null goes into a column of a type."""


class PostgresDatabase(Database):
    """A PostgreSQL server, by psycopg. ``repr`` shows nothing of its URL, which may hold a password."""

    mark = "%s"

    def __init__(self, url: str) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise MissingPackageError(
                "`upsert` needs psycopg for PostgreSQL; pip install 'slicewise[postgres]'"
            ) from error
        self.url = url
        self.nulls_are_equal = True

    def __repr__(self) -> str:
        return "PostgresDatabase(...)"

    def qualified(self, table: str) -> str:
        """A point stands between a schema and a table."""
        return ".".join(map(quoted, table.split(".")))

    def connect(self) -> Any:
        """A connection that holds the lock under which tables are made and micro-batches counted."""
        import psycopg

        connection = psycopg.connect(self.url)
        self.nulls_are_equal = connection.info.server_version >= 150_000
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('slicewise.upsert'))")
        return connection

    def columns_of(self, connection: Any, table: str) -> dict[str, bool]:
        """From the catalogue, by the name as a statement finds it."""
        rows = connection.execute(
            "SELECT a.attname, c.relkind = 'v' FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "WHERE c.oid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped",
            [table],
        )
        return dict(rows.fetchall())

    def type_of(self, type_: pa.DataType) -> str:
        """The narrowest type that holds every value."""
        if pa.types.is_timestamp(type_):
            return "timestamptz" if type_.tz else "timestamp"
        if pa.types.is_decimal(type_):
            return f"numeric({type_.precision}, {type_.scale})"
        if pa.types.is_nested(type_):
            return "jsonb"
        return _POSTGRESQL.get(str(type_), "text")

    def writer(self, type_: pa.DataType) -> Callable[[Any], Any]:
        """psycopg knows all but nested values."""
        if pa.types.is_nested(type_):
            return _map_text if pa.types.is_map(type_) else json_text
        return _itself if str(type_) in _POSTGRESQL or _has_a_type(type_) else str


class SqliteDatabase(Database):
    """A file of SQLite, which has few types: times, dates, decimals and nested values are text, and NaN is null."""

    mark = "?"
    nulls_are_equal = False

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"SqliteDatabase({self.path!r})"

    def connect(self) -> Any:
        """A connection that is the only one to write."""
        connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def columns_of(self, connection: Any, table: str) -> dict[str, bool]:
        """As pragmas tell it."""
        name = table.removeprefix('"').removesuffix('"').replace('""', '"')
        kind = connection.execute("SELECT type = 'view' FROM sqlite_master WHERE name = ?", [name]).fetchone()
        rows = connection.execute("SELECT name FROM pragma_table_info(?)", [name])
        return {column: bool(kind and kind[0]) for (column,) in rows}

    def type_of(self, type_: pa.DataType) -> str:
        """One of five."""
        if pa.types.is_integer(type_) or pa.types.is_boolean(type_):
            return "INTEGER"
        if pa.types.is_floating(type_):
            return "REAL"
        return "BLOB" if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) else "TEXT"

    def writer(self, type_: pa.DataType) -> Callable[[Any], Any]:
        """Times in UTC, of equal length, so that they sort as they follow each other."""
        if pa.types.is_nested(type_):
            return _map_text if pa.types.is_map(type_) else json_text
        if pa.types.is_timestamp(type_):
            return _time_text
        return str if self.type_of(type_) == "TEXT" else _itself


_POSTGRESQL = {
    "bool": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float": "real",
    "double": "double precision",
    "binary": "bytea",
    "large_binary": "bytea",
    "date32[day]": "date",
    "string": "text",
    "large_string": "text",
}


def _has_a_type(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_decimal(type_))


def _map_text(pairs: list[tuple[Any, Any]]) -> str:
    return json_text({str(_plain(key)): value for key, value in pairs})


def _itself(value: Any) -> Any:
    return value


def _time_text(value: datetime.datetime) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value.isoformat(sep=" ", timespec="microseconds")


def identity_text(values: list[Any]) -> str:
    """Which row it is, as a text: equal for values that SQL takes for equal, and for nulls.

    >>> identity_text([0.0, None, decimal.Decimal("1.50")]) == identity_text([-0.0, None, decimal.Decimal("1.5")])
    True
    """
    plain = [v + 0.0 if isinstance(v, float) else v for v in values]
    return json_text([str(v.normalize()) if isinstance(v, decimal.Decimal) else v for v in plain])
