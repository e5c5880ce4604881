"""One Spark session for all tests of this folder; those that use it are marked ``spark``.

The others need no JVM and run in ``make check``. A test that starts a process with a JVM carries the mark itself.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sessions import compiled, shared_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.cluster import Cluster
HERE = Path(__file__).parent
#: Spark has pipelines since 4.1: where there are none, there is nothing to be tried.
collect_ignore = [] if importlib.util.find_spec("pyspark.pipelines") else ["test_known_frames.py", "test_pipelines.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and {"spark", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = shared_session()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def compiled_where_it_matters(request: pytest.FixtureRequest) -> Iterator[None]:
    """What `make matrix` runs on every version of Spark runs as it does for users, with plans that Spark compiles."""
    if "spark" in request.fixturenames and request.node.get_closest_marker("matrix"):
        with compiled(request.getfixturevalue("spark")):
            yield
    else:
        yield


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of its own, with a Python that has everything but slicewise; see tests/spark/cluster.py."""
    from tests.spark.cluster import Cluster

    started = Cluster.start(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()
