"""URLs of stores."""

import re
import ssl
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from auxhash import stores
from auxhash.cli import main
from auxhash.compute.extras import install
from auxhash.stores import milvus
from auxhash.stores.address import Address
from auxhash.stores.connection import settings
from tests.stores.engines import check_installed


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
    ("url", "path"),
    [
        ("sqlite:///notes#1.db", "notes#1.db"),
        ("sqlite:///notes%231.db?table=x", "notes#1.db"),
        ("sqlite:///a#b?table=x#y", None),  # the table is x#y, and no name
        ("sqlite:///100%.db", "100%.db"),
        ("sqlite:///100%25.db", "100%.db"),
        ("sqlite:///50%2520.db", "50%20.db"),
        ("sqlite:///why%3F.db", "why?.db"),
        ("sqlite:///a\tb\nc.db", "a\tb\nc.db"),
        ("sqlite:///a+b;c&d=e.db", "a+b;c&d=e.db"),
    ],
)
def test_no_sign_of_a_path_is_dropped(url, path):
    """urlsplit drops tabs, and all from # on."""
    if path is None:
        with pytest.raises(ValueError, match="table in url must be a name"):
            Address.of(url)
    else:
        assert str(Address.of(url).file()) == path
        assert Address.of(str(Address.of(url))).file() == Address.of(url).file()


NAMES = ("notes#1.db", "notes#2.db", "notes", "a?table=b.db", "a%20b.db", "a b.db", "~", "ü.db")


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb", "lancedb"])
def test_any_path_is_a_file_of_its_own(scheme, tmp_path, monkeypatch):
    check_installed(scheme)
    monkeypatch.chdir(tmp_path)
    for n_bits, name in enumerate(NAMES, 1):
        stores.open(stores.file_url(scheme, name), n_bits=n_bits).close()
    assert {path.name for path in tmp_path.iterdir()} == set(NAMES)
    for n_bits, name in enumerate(NAMES, 1):
        with stores.open(stores.file_url(scheme, tmp_path / name)) as store:
            assert store.n_bits == n_bits


def test_passwords_with_any_sign():
    for url in ("postgresql://me:a#b@host/db", "postgresql://host/db?password=a#b"):
        assert settings(Address.of(url))["password"] == "a#b"
        assert settings(Address.of(url))["host"] == "host"
    for url in ("postgresql://me:se/cret@host/db", "postgresql://me:se?cret@host/db"):
        with pytest.raises(ValueError, match=r"port in url must be .* / is %2F, . is") as error:
            Address.of(url)
        assert "'se'" not in str(error.value)


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
        ("sqlite:///why?", r"options such as table=NAME after its \?; a \? in a path is .* %3F"),
        ("sqlite:///why?.db", r"a \? in a path is written %3F"),
        ("sqlite:///why?&", r"a \? in a path is written %3F"),
        ("sqlite:///a%FF.db", "url must be a URL: 'utf-8' codec can't decode"),
        ("sqlite:///a%00.db", "path in url must not hold the character 0"),
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
        assert settings(address)["password"] == "secret"
        assert settings(address)["host"] == "host"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("//me@Host:77/db", {"host": "Host", "port": 77, "user": "me", "database": "db"}),
        ("//me@[::1]/db", {"host": "::1", "port": 5432, "ssl_context": None}),
        ("//a%40b:p%2Bq+%25@h", {"user": "a@b", "password": "p+q+%", "database": "a@b"}),
        ("//me:@/db?host=/Run/x&port=7", {"host": "/Run/x", "port": 7, "password": ""}),
        ("//me@%2FRun%2Fx/db", {"host": "/Run/x", "ssl_context": False}),
        (
            "///?user=u&dbname=d&password=a+b%20c",
            {"user": "u", "database": "d", "password": "a+b c"},
        ),
        ("//u@h?options=-cx%3D1,y", {"startup_params": {"options": "-cx=1,y"}}),
        ("//u@h?application_name=a&connect_timeout=3", {"connect_timeout": 3}),
        ("//u@h?sslmode=disable", {"ssl_context": False}),
        ("//u@h?sslmode=require", {"ssl_context": True}),
    ],
)
def test_postgresql_servers(url, expected, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    values = settings(Address.of(f"postgresql:{url}"))
    assert {key: values[key] for key in expected} == expected


def test_postgresql_certificates():
    """A check of the certificate is made for who asks for one."""
    for mode, name in (("verify-full", True), ("verify-ca", False)):
        for root in ("", "&sslrootcert=system"):
            context = settings(Address.of(f"postgresql://u@h?sslmode={mode}{root}"))["ssl_context"]
            assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, name)
    strict = settings(Address.of("postgresql://u@h?sslmode=require&sslrootcert=system"))
    assert strict["ssl_context"].verify_mode == ssl.CERT_REQUIRED


def test_postgresql_password_of_the_environment(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert settings(Address.of("postgresql://me@h/db"))["password"] == "secret"
    assert settings(Address.of("postgresql://me:other@h/db"))["password"] == "other"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("//h/db?service=x", "options of a postgresql URL are table, .*; got 'service'"),
        ("//h/db?sslmode=yes", "sslmode in url must be one of disable, .*; got 'yes'"),
        ("//h/db?sslmode=verify-ca&sslrootcert=/no", "sslrootcert in url: /no cannot be read"),
        ("//h/db?port=x", "port in url must be a whole number"),
        ("//h/db?connect_timeout=-1", "connect_timeout in url must be a whole number"),
    ],
)
def test_wrong_urls_of_postgresql(url, says):
    with pytest.raises(ValueError, match=says):
        settings(Address.of(f"postgresql:{url}"))


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("duckdb:///a.db", "duckdb", "duckdb"),
        ("lancedb:///a", "lancedb", "lancedb"),
        ("postgresql://host/db", "pg8000", "postgresql"),
        ("milvus:///a.db", "pymilvus", "milvus"),
        ("milvus+http://host:19530", "pymilvus", "milvus"),
    ],
)
def test_missing_packages_are_named(url, module, extra, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    says = re.escape(f"this store needs {module}: {install(extra)}")
    with pytest.raises(ImportError, match=says):
        stores.open(url, n_bits=8)
    np.save("codes.npy", np.zeros((2, 1), np.uint8))
    result = CliRunner().invoke(main, ["store", "push", url, "codes.npy"])
    assert result.exit_code == 1
    assert f"Error: this store needs {module}: {install(extra)}" in result.output


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("milvus+http://host:19530", {"uri": "http://host:19530"}),
        ("milvus+https://host", {"uri": "https://host"}),
        (
            "milvus+http://me:secret@host:1/mine?table=a",
            {"uri": "http://host:1", "user": "me", "password": "secret", "db_name": "mine"},
        ),
        (
            "milvus+http://a%40b:p#q%2F@host/m%20n",
            {"uri": "http://host", "user": "a@b", "password": "p#q/", "db_name": "m n"},
        ),
    ],
)
def test_milvus_servers(url, expected):
    assert milvus._connection(Address.of(url), 8) == expected


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("milvus:///a.txt", "a file of Milvus Lite must .* end in .db; got a.txt"),
        ("milvus:///a#1.db", "a file of Milvus Lite must be named by letters, .*; got a#1.db"),
        ("milvus+http:///a", "url must be milvus"),
        ("milvus+http://host?x=1", "have the option table and no other; got 'x'"),
    ],
)
def test_wrong_urls_of_milvus(url, says):
    with pytest.raises(ValueError, match=says):
        milvus._connection(Address.of(url), 8)
