"""One Spark session for all tests of this folder; those that use it are marked ``spark``.

The others need no JVM and run in ``make check``. A test that starts a process with a JVM carries the mark itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions import shared_session

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents and {"spark", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark():
    session = shared_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A cluster of its own, with a Python that has everything but slicewise; see tests/spark/cluster.py."""
    from tests.spark.cluster import Cluster

    started = Cluster.start(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()
