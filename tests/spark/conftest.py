"""One Spark session for all tests of this folder, each of which is marked ``spark``."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark():
    from slicewise.spark import local_session

    session = local_session("tests", master="local[2]", conf={"spark.sql.shuffle.partitions": "3"})
    yield session
    session.stop()
