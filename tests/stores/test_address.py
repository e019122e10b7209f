"""URLs of stores."""

import pytest

from auxhash import stores
from auxhash.stores.address import Address


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///codes.db", "codes.db"),
        ("sqlite:///a/b%20c.db?table=x", "a/b c.db"),
        ("sqlite:////tmp/codes.db", "/tmp/codes.db"),
    ],
)
def test_paths(url, path):
    assert str(Address.of(url).file()) == path
    assert str(Address.of(url)) == url


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (3, "url must be text, such as sqlite:///codes.db, got 3"),
        ("codes.db", "url must begin with one of sqlite://"),
        ("mysql://u:secret@host/db", r"url must begin with one of .* got 'mysql://u:\*\*\*@host"),
        ("sqlite://codes.db", "url must be sqlite:///path, with four slashes"),
        ("sqlite:///", "url must be sqlite:///path"),
        ("sqlite:///a.db?mode=ro", "sqlite URLs have the option table and no other; got 'mode'"),
        ("sqlite:///a.db?table=a-b", "table in url must be a name"),
        ("sqlite:///a.db?table=", "table in url must be a name"),
        ("sqlite:///a.db?table=x;drop", "table in url must be a name"),
        ("sqlite://[x/a.db", "url must be a URL"),
    ],
)
def test_wrong_urls(url, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=says):
        stores.open(url, n_bits=8)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n_bits", [0, -3, 2**15, 1.5, "8", True])
def test_wrong_bits(n_bits, tmp_path):
    with pytest.raises(ValueError, match="n_bits must be a whole number from 1 to 32767"):
        stores.open(f"sqlite:///{tmp_path}/a.db", n_bits=n_bits)
    assert list(tmp_path.iterdir()) == []


def test_passwords_are_not_told():
    for url in ("postgresql://me:secret@host:5432/db", "postgresql://host/db?password=secret"):
        address = Address.of(url)
        assert "secret" not in str(address)
        assert "secret" in address.for_server
        assert address.parts.hostname == "host"
