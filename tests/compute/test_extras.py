"""The command that installs an extra: of a checkout, or of an index."""

import json
from importlib import metadata

import pytest

from auxhash.compute.extras import install


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        (None, "pip install 'auxhash[serve]'"),
        ({"url": "https://e.org/a.whl", "archive_info": {}}, "pip install 'auxhash[serve]'"),
        ({"url": "file:///my%20home/a", "dir_info": {}}, "pip install '/my home/a[serve]'"),
        ({"url": "file:///a", "dir_info": {"editable": True}}, "pip install -e '/a[serve]'"),
    ],
)
def test_from_where_the_package_came(monkeypatch, noted, command):
    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if noted is None else json.dumps(noted)

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert install("serve") == command


def test_a_package_that_is_not_installed(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "distribution", missing)
    assert install("serve") == "pip install 'auxhash[serve]'"
