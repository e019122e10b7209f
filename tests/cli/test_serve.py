"""`auxhash serve`: what it opens, and what it refuses before it listens."""

import json
import socket
import sys
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner

import auxhash
from auxhash import QueryTables, stores
from auxhash.cli import main
from auxhash.compute.extras import install
from auxhash.experiments.datasets import digits
from auxhash.learn import baselines
from tests.serve.conftest import BITS
from tests.serve.conftest import model as model
from tests.serve.conftest import url as url

serve = pytest.importorskip("tests.serve.asking", reason="auxhash[serve] is missing")

TOKEN = {"AUXHASH_TOKEN": "a-token-that-nobody-knows"}


def run(*options, env=None):
    return CliRunner().invoke(main, ["serve", "--port", "0", *map(str, options)], env=env)


def refused(*options, env=None, code=1):
    """The one line in which it is told."""
    result = run(*options, env=env)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output.strip().splitlines()[-1]


@pytest.fixture
def opened(monkeypatch):
    """The service that would have been served, its limits, and what the server is given."""
    kept = {}

    def instead(app, work, at, limits, proxies, log_requests):
        service = work._opened()
        kept.update(info=service.info(), limits=limits, proxies=proxies, service=service)
        service.close()

    monkeypatch.setattr("auxhash.serve.server.run", instead)
    return kept


def test_a_model_and_a_store(opened, model, url):
    result = run("--model", model, "--store", url, "-k", 50, "--rate", 7, "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.output)
    assert content["url"].startswith("http://127.0.0.1:")
    assert (content["store"], content["model"], content["token"]) == (url, str(model), False)
    assert opened["info"]["n_features"] == 6
    assert (opened["limits"].k, opened["limits"].rate, opened["limits"].batch) == (50, 7, 1000)
    with stores.open(url) as store:
        assert store.n_bits == BITS


def test_a_model_of_queries(opened, model, url, tmp_path):
    """It takes vectors of other features than the model, and no codes of another one."""
    codes = np.zeros((30, -(-BITS // 8)), np.uint8)
    Q = np.random.default_rng(0).normal(size=(30, 9))
    asker = QueryTables(BITS, "linear", n_steps=1, random_state=0)
    asked = tmp_path / "asker.safetensors"
    asker.fit(Q, np.arange(30), codes, made_for=auxhash.Model.load(model).fingerprint).save(asked)
    result = run("--model", model, "--store", url, "--query-model", asked)
    assert result.exit_code == 0, result.output
    info = opened["info"]
    assert (info["n_features"], info["n_query_features"]) == (6, 9)
    assert info["by"] == ["hamming", "outputs", "tables"]
    alone = run("--model", asked, "--store", url)  # for queries and new documents, both
    assert alone.exit_code == 0, alone.output
    assert (opened["info"]["n_features"], opened["info"]["n_query_features"]) == (9, 9)
    assert "give both" in refused("--store", url, "--query-model", asked, code=2)
    asker.fit(Q, np.arange(30), codes, made_for="0" * 16).save(asked)
    message = refused("--model", model, "--store", url, "--query-model", asked)
    assert f"was learnt for codes of model {'0' * 16}, and the model is" in message


def test_a_new_store_of_codes(opened, url):
    for _ in range(2):
        assert run("--store", url, "--bits", 40).exit_code == 0
        assert (opened["info"]["n_bits"], opened["info"]["n_features"]) == (40, None)
    assert "n_bits must be 40" in refused("--store", url, "--bits", 8)


def test_a_store_of_another_model(opened, model, url, tmp_path):
    """It is refused in one line, unless its model is there too, or one knows better."""
    X = np.random.default_rng(0).normal(size=(200, 6))
    old = baselines.LSH(n_bits=BITS, random_state=1).fit(X)
    old.save(tmp_path / "old.safetensors")
    with stores.open(url, BITS) as store:
        store.upsert([1], old.encode(X[:1]), X[:1], fingerprint=old.fingerprint)
    message = refused("--model", model, "--store", url)
    assert message.startswith(f"Error: {url} was made by model {old.fingerprint} and the model by")
    assert "`auxhash store encode-again`" in message
    for more in (("--old-model", tmp_path / "old.safetensors"), ("--any-model",)):
        assert run("--model", model, "--store", url, *more).exit_code == 0
        assert opened["info"]["made_by"] == old.fingerprint != opened["info"]["model"]
    assert "give both" in refused("--store", url, "--old-model", model, code=2)


def test_digits(opened, tmp_path, monkeypatch):
    """Learnt once, and then loaded; a store that was changed stays so."""
    monkeypatch.setattr(digits, "load", partial(digits.load, n_train=150))
    monkeypatch.setattr(  # learnt soon; tests/cli/test_examples.py learns the real one
        "auxhash.experiments.demonstration.digits.MACHash",
        lambda n_bits, random_state: baselines.LSH(n_bits, random_state=random_state),
    )
    # The page has models of its own; the command of this name hides the module.
    monkeypatch.setattr(sys.modules["auxhash.cli.serve"], "_show", lambda: None)
    folder = tmp_path / "data #1?"  # of any name
    env = {"AUXHASH_DATA": str(folder)}
    assert run(env=env).exit_code == 0
    first = opened["info"]
    assert (first["points"], first["n_features"], first["images"]) == (1500, 64, True)
    [model] = (folder / "serve").glob("*.safetensors")
    [store] = (folder / "serve").glob("*.db")
    written = model.stat().st_mtime_ns
    with stores.open(stores.file_url("sqlite", store)) as reopened:
        payloads = {point.payload["digit"] for point in reopened.read(range(50)).values()}
        assert payloads <= set(range(10))
        reopened.delete([0])
    assert run(env=env).exit_code == 0
    assert opened["info"]["points"] == 1499
    assert model.stat().st_mtime_ns == written
    model.write_bytes(b"damaged")
    assert run(env=env).exit_code == 0
    assert opened["info"]["points"] == 1499  # the same model, so the same store
    monkeypatch.setattr("auxhash.experiments.demonstration.digits.__version__", "0.0.later")
    assert run(env=env).exit_code == 0
    [other] = set((folder / "serve").glob("*.safetensors")) - {model}
    assert other.read_bytes() == model.read_bytes()  # LSH is the same in both


def test_a_token_for_other_addresses(opened, url, tmp_path):
    stores.open(url, 8).close()
    message = refused("--store", url, "--host", "0.0.0.0")
    assert message == (
        "Error: --host 0.0.0.0 can be reached from other machines: give --token-file or "
        "AUXHASH_TOKEN"
    )
    assert "can be reached" in refused("--store", url, "--host", "::")
    assert "can be reached" in refused("--store", url, "--host", "example.org")
    path = tmp_path / "token"
    for wrong in ("short", "long enough but with spaces", "", "é" * 20):
        path.write_text(wrong)
        message = refused("--store", url, "--token-file", path)
        assert message == (
            f"Error: the token in {path} must be at least 16 characters of ASCII without spaces"
        )
    message = refused("--store", url, env={"AUXHASH_TOKEN": "short"})
    assert "the token in AUXHASH_TOKEN must be" in message
    env = {"AUXHASH_TOKEN": "a-token-that-nobody-knows"}
    result = run("--store", url, "--host", "0.0.0.0", "--json", env=env)
    assert json.loads(result.output)["token"] is True
    assert "nobody-knows" not in result.output


def test_what_is_refused(url, model, tmp_path):
    assert "--model needs the --store" in refused("--model", model, code=2)
    message = refused("--store", url)
    assert message == f"Error: there is no store at {url}: --model or --bits would make one"
    assert "--bits is for a --store without --model" in refused(
        "--store", url, "--model", model, "--bits", 8, code=2
    )
    assert "--bits is for a --store" in refused("--bits", 8, code=2)
    stores.open(url, 8).close()
    message = refused("--store", url, "--model", model)
    assert message.startswith(f"Error: n_bits must be 8, as of the codes in {url}; got {BITS}")
    assert "k must be a whole number of at least 1" in refused("--store", url, "-k", 0)
    assert "No such file" in refused("--store", url, "--token-file", tmp_path / "none")
    assert "No such file" in refused("--store", url, "--model", tmp_path / "none")
    assert "--features is for models of pictures" in refused(
        "--store", url, "--model", model, "--features", "a:b"
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refused("--store", url, "--port", port)
        assert message == f"Error: cannot listen at 127.0.0.1:{port}: Address already in use"
    message = refused("--store", url, "--host", "no.such.host.invalid", env=TOKEN)
    assert "is no address to listen at" in message


def test_pictures_of_a_model(opened, tmp_path, url, monkeypatch):
    """A model of GIST takes images; of a feature of one's own, only where the user says so."""
    X = np.random.default_rng(0).normal(size=(50, 320))
    made = baselines.LSH(n_bits=16, random_state=0).fit(X)
    for feature, images in (("gist:16", True), ("mine:feature", False)):
        made.image_feature_ = feature
        made.save(tmp_path / "m.safetensors")
        assert run("--store", url, "--model", tmp_path / "m.safetensors").exit_code == 0
        assert opened["info"]["images"] is images
    (tmp_path / "mine.py").write_text("def feature(pictures):\n    return [[0.0] * 320]\n")
    monkeypatch.syspath_prepend(tmp_path)
    options = ("--store", url, "--model", tmp_path / "m.safetensors", "--features", "mine:feature")
    assert run(*options).exit_code == 0
    assert opened["info"]["images"] is True


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert refused() == f"Error: serve needs uvicorn: {install('serve')}"
