"""Listening at an address, in this process."""

import pytest

pytest.importorskip("uvicorn", reason="auxhash[serve] is missing")

from auxhash.serve import server
from auxhash.serve.limits import Limits


def test_a_store_that_cannot_be_opened_while_the_server_starts(caplog):
    class Failing:
        failed = None

    work, messages = Failing(), []

    async def application(scope, receive, send):
        messages.append((await receive())["type"])
        work.failed = ValueError("no such store")
        work.on_failure()
        await send({"type": "lifespan.startup.complete"})
        messages.append((await receive())["type"])
        await send({"type": "lifespan.shutdown.complete"})

    with pytest.raises(ValueError, match="no such store"):
        server.run(application, work, server.listen("127.0.0.1", 0), Limits())
    assert messages == ["lifespan.startup", "lifespan.shutdown"]
    assert not caplog.records


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_loopback(host, is_it):
    assert server.is_loopback(host) is is_it
