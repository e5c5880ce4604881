"""One mock cluster and one Spark session for all tests of this folder; each test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sessions import shared_session
from tests.sources.brokers import Brokers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = shared_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def brokers() -> Iterator[Brokers]:
    started = Brokers()
    yield started
    started.stop()
