"""build: a folder that is whole or not there, from tables of any kind and from pictures."""

import json
import sys

import click
import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from auxhash import stores
from auxhash.cli.build import served_files
from auxhash.learn import encoder

build = sys.modules["auxhash.cli.build"]


def content(folder):
    """The points in a folder, by id."""
    with stores.open(served_files(str(folder))[1]) as store:
        return store.read(np.concatenate([ids for ids, _ in store.batches()]))


@pytest.fixture
def docs(here):
    """A table of vectors, with ids, text, numbers, dates and gaps beside them."""
    X = np.load("features.npy").astype(np.float32)
    days = np.arange("2016-01-01", "2016-04-30", dtype="datetime64[D]")[: len(X)]
    columns = {
        "doc_id": [10 * i for i in range(len(X))],
        "title": [None if i == 3 else f"title {i}" for i in range(len(X))],
        "year": [float("nan") if i == 4 else 2000.0 + i for i in range(len(X))],
        "day": days,
        "vector": list(X),
    }
    parquet.write_table(arrow.table(columns), here / "docs.parquet")
    return X


def test_a_table_becomes_a_search(docs, here, model, run):
    command = ("build", "docs.parquet", "--id", "doc_id", "--model", model, "-o", "out")
    result = run(*command, "--payload", "title, year,day", "--vectors", "--json")
    assert (result["points"], result["bits"], result["vectors"]) == (120, 12, True)
    assert result["payload"] == ["title", "year", "day"]
    assert sorted(path.name for path in here.glob("out*")) == ["out"]
    points, hasher = content("out"), encoder.load("out/model.safetensors")
    assert sorted(points) == [10 * i for i in range(120)]
    np.testing.assert_array_equal(points[70].code, hasher.encode(docs[7:8])[0])
    np.testing.assert_array_equal(points[70].vector, docs[7])
    assert points[70].payload == {"title": "title 7", "year": 2007.0, "day": "2016-01-08"}
    assert points[30].payload == {"year": 2003.0, "day": "2016-01-04"}
    assert points[40].payload == {"title": "title 4", "day": "2016-01-05"}


def test_columns_of_payloads_are_no_features(here, run):
    """Of a table of text, with text and numbers beside the features; the model is learnt."""
    head, *lines = (here / "table.csv").read_text().splitlines()
    rows = [f"{i},007,{1.5 * i},{line}" for i, line in enumerate(lines)]
    (here / "more.csv").write_text("\n".join([f"key,name,price,{head}", *rows]) + "\n")
    options = ("--payload", "name,price,y", "--id", "key", "--bits", 8, "--jobs", 1)
    result = run("build", "more.csv", *options, "-o", "out", "--json")
    assert result["fit"]["features"] == 64
    assert result["fit"]["bits"] == result["bits"] == 8
    points = content("out")
    assert points[2].vector is None
    assert points[2].payload == {"name": "007", "price": 3.0, "y": lines[2][-1]}
    hasher = encoder.load("out/model.safetensors")
    assert hasher.feature_names_in_.tolist() == [f"pixel{i}" for i in range(64)]


def test_text_ids(docs, here, model, run):
    table = parquet.read_table("docs.parquet")
    names = [f"doc-{i:03}" for i in range(len(docs))]
    parquet.write_table(table.append_column("key", arrow.array(names)), "named.parquet")
    run("build", "named.parquet", "--id", "key", "--model", model, "-o", "out")
    assert list(content("out")) == names


def test_pictures_are_called_by_their_names(here, run):
    result = run("build", "photos", "-o", "out", "--bits", 8, "--jobs", 1, "--vectors", "--json")
    assert (result["points"], result["fit"]["features"]) == (24, 320)
    points, hasher = content("out"), encoder.load("out/model.safetensors")
    assert {"across/01.png", "down/00.jpg"} <= set(points)
    assert len(points["across/01.png"].vector) == 320
    assert hasher.image_feature.startswith("gist:")
    command = ("build", "photos", "--payload", "title", "-o", "titled")
    assert "photos is a folder, and a file is needed" in run(*command, code=1).output


def test_row_numbers_without_ids(here, model, run):
    run("build", "features.npy", "--model", model, "-o", "new/out")
    assert sorted(content("new/out")) == list(range(120))


def interrupted(*arguments):
    raise KeyboardInterrupt


def test_an_interrupted_build_goes_on(here, model, run, monkeypatch):
    """Interrupted while it learns, stores, and at last; the folder is there only at the end."""
    command = ("build", "table.csv", "-o", "out", "--bits", "8", "--jobs", "1")
    checkpoints = []

    @click.command()
    @click.pass_context
    def stopped(ctx, checkpoint, output, **more):
        checkpoints.append(checkpoint)
        (here / output).write_bytes(b"the best so far")
        ctx.exit(130)

    with monkeypatch.context() as patched:
        patched.setattr(build, "fit", stopped)
        run(*command, code=130)
    assert checkpoints == ["out.building/checkpoint"]
    assert not (here / "out").exists()
    for step in ("_fill", "_take_place"):
        with monkeypatch.context() as patched:
            patched.setattr(build, step, interrupted)
            assert "going on with what was begun" in run(*command, code=130).output
        assert not (here / "out").exists()
    learnt = (here / "out.building" / "model.safetensors").read_bytes()
    (here / "out.building" / "store.db").write_bytes(b"half")
    monkeypatch.setattr(build, "fit", None)  # not once more
    run("serve", "out", "--port", 0, code=1)
    run(*command)
    assert (here / "out" / "model.safetensors").read_bytes() == learnt
    assert len(content("out")) == 120
    assert sorted(path.name for path in here.glob("out*")) == ["out"]


def test_other_settings_start_anew(here, model, run, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(build, "_fill", interrupted)
        run("build", "features.npy", "-o", "out", "--model", model, code=130)
    result = run("build", "queries.npy", "-o", "out", "--model", model)
    assert "going on" not in result.output
    assert len(content("out")) == 40


def test_what_is_there_is_not_lost(here, model, run):
    command = ("build", "features.npy", "--model", model, "-o")
    run(*command, "out")
    with stores.open(served_files("out")[1]) as store:
        store.delete([7])
    says = "out holds a search already: --force builds it anew"
    assert says in run(*command, "out", code=1).output
    run(*command, "out", "--force")
    assert len(content("out")) == 120
    for path in ("photos", "table.csv"):
        output = run(*command, path, "--force", code=1).output
        assert f"{path} is there, and not made by `auxhash build`: give another" in output
    (here / "empty").mkdir()
    run(*command, "empty")
    (here / "new.building").mkdir()
    assert "new.building is there, and not made" in run(*command, "new", code=1).output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("docs.parquet --id doc", "has no column 'doc' of ids, but"),
        ("docs.parquet --payload title,none", "docs.parquet has no column 'none'"),
        ("features.npy --payload title", "features.npy must end in .csv, .parquet"),
        ("features.npy --id key", "features.npy has no column 'key' of ids, but no columns"),
        ("twice.csv --id key", "twice.csv: ids must be different, and 7 is that of two points"),
        ("missing.npy", "missing.npy: No such file or directory"),
    ],
)
def test_what_is_refused_before_anything_is_learnt(docs, here, run, options, says, monkeypatch):
    monkeypatch.setattr(build, "fit", None)
    (here / "twice.csv").write_text("key,a\n7,1\n7,2\n8,3\n")
    assert says in run("build", *options.split(), "-o", "out", code=1).output
    assert not (here / "out").exists()


def test_bits_are_of_a_model_that_is_learnt(here, model, run):
    result = run("build", "features.npy", "--model", model, "--bits", 8, "-o", "out", code=2)
    assert "--bits are those of a model that is learnt" in result.output


def test_serve_takes_folders_of_build_alone(here, model, run, monkeypatch):
    run("build", "features.npy", "--model", model, "-o", "out")
    served = []

    def instead(app, work, *more):
        service = work._opened()
        served.append(service.info())
        service.close()

    monkeypatch.setattr("auxhash.serve.server.run", instead)
    result = run("serve", "out", "--port", 0, "--json")
    assert (served[0]["points"], served[0]["n_bits"]) == (120, 12)
    assert result["model"] == "out/model.safetensors"
    [line] = run("search", "out", "queries.npy", "--model", model, code=1).output.splitlines()
    assert "out is a folder that `auxhash build` made, and no index: `auxhash serve out` or" in line
    advised = line.partition("or `auxhash ")[2].partition("`")[0].split()
    assert run(*advised, "queries.npy", "--model", model, "--json")["queries"] == 40
    output = run("search", "photos", "queries.npy", code=1).output
    assert "photos is a folder, and an index is a file" in output
    assert "leave out --model" in run("serve", "out", "--model", model, code=2).output
    (here / "out" / "build.json").write_text(json.dumps({"auxhash": "0.1.0"}))
    for path, says in (
        ("photos", "photos is no folder that `auxhash build` has finished"),
        ("out", "out is no folder that `auxhash build` has finished"),
        ("nothing", "there is no folder nothing"),
        ("table.csv", "there is no folder table.csv"),
    ):
        [line] = run("serve", path, "--port", 0, code=1).output.splitlines()
        assert says in line
    (here / "half.building").mkdir()
    result = run("serve", "half", code=1).output
    assert "its build has not ended, and goes on with the same command" in result
