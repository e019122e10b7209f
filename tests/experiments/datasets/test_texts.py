"""Data sets of texts, fetched by fake package clients; a model of letters in place of MiniLM."""

import hashlib
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from auxhash.cli import main
from auxhash.compute import neighbors
from auxhash.compute.extras import install
from auxhash.experiments import datasets
from auxhash.experiments.datasets import debian, embedded, minilm, wordnet
from auxhash.experiments.datasets.fetch import archives
from auxhash.experiments.datasets.fetch.sources import Collection, DataError, File, Npm
from tests.experiments.datasets.made import tar_of

STANZAS = """\
Package: editor
Description-md5: 0
Description-en: tool for letters
 Writes  letters, and
 reads them:
  * quickly
 .
 Not for numbers.

Package: bare
Description-md5: 1
Description-en: nothing but a title

Package: another
Description-md5: 2
Description-en: tool for numbers\tand signs
 Adds numbers.

"""
# A fake apt-get: it writes its lists where the option says.
APT = """
lists = next(word for word in sys.argv if word.startswith('Dir::State::lists=')).split('=')[1]
for number, text in enumerate({texts!r}):
    with open(f'{{lists}}/part{{number}}_Translation-en', 'w') as out:
        out.write(text)
"""
GLOSSES = """\
  1 This software and database is being provided
00001 05 n 02 dog 0 domestic_dog 1 001 @ 02 n 0000 | a friend of man; "the dog barked"; "good dog"
00002 05 n 01 friend 0 000 | a friend of man
00003 05 n 0a a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 000 | ten letters; "good dog"
"""


class Letters:
    """A model whose vectors count letters."""

    calls = 0

    def __init__(self, home, device):
        assert home == minilm.MODEL.home

    def __call__(self, texts):
        Letters.calls += len(texts)
        counts = np.zeros((len(texts), minilm.DIMENSION))
        for row, text in enumerate(texts):
            np.add.at(counts[row], np.frombuffer(text.encode(), np.uint8), 1)
        return neighbors.normalized(counts + 1e-3).astype(np.float32)


@pytest.fixture
def letters(folder, monkeypatch):
    monkeypatch.setattr(embedded, "check_installed", lambda: None)
    monkeypatch.setattr(debian, "check_installed", lambda: None)
    monkeypatch.setattr(embedded, "best_device", lambda: "abacus")
    for module in (minilm, debian, wordnet):
        monkeypatch.setattr(module, "MODEL", Collection("minilm", (), ()))
    monkeypatch.setattr(minilm, "MiniLM", Letters)
    monkeypatch.setattr(embedded, "SMALL_ROWS", 30)
    Letters.calls = 0
    return folder


def many(n):
    """Stanzas of n packages; every third has a title that others have, too."""
    titles = ["the same" if row % 3 == 0 else f"tool number {row}" for row in range(n)]
    stanza = "Package: p{:03}\nDescription-md5: 0\nDescription-en: {}\n It does {}.\n\n"
    return "".join(stanza.format(row, title, row * 7919) for row, title in enumerate(titles))


def test_descriptions_out_of_lists(tmp_path):
    """Lines are joined, equal descriptions kept once, and the sum stands before the rest."""
    again = STANZAS.replace("Package: editor", "Package: another-editor")
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, text in zip(paths, (STANZAS, again), strict=True):
        path.write_text(text)
    ((name, content),) = debian.from_lists(paths)
    first, rest = content.read().split(b"\n", 1)
    assert name == debian.TEXTS
    assert first.decode() == hashlib.sha256(rest).hexdigest()
    assert rest.decode().splitlines() == [
        "another\ttool for numbers and signs\tAdds numbers.",
        "another-editor\ttool for letters\t"
        "Writes letters, and reads them: * quickly Not for numbers.",
    ]
    with pytest.raises(ValueError, match="no English descriptions"):
        list(debian.from_lists([]))


@pytest.mark.parametrize("cosine", [False, True])
def test_debian(letters, client, cosine):
    client("apt-get", APT.format(texts=[many(40), many(60)]))
    data = datasets.load("debian-minilm", n_query=10, n_neighbors=5, n_train=20, cosine=cosine)
    assert (len(data.train), len(data.base), len(data.query)) == (20, 50, 10)
    assert not set(data.base.texts) & set(data.query.texts)
    if not cosine:
        np.testing.assert_array_equal(data.base.X, Letters(minilm.MODEL.home, 0)(data.base.texts))
    near = neighbors.nearest(data.base.X, data.query.X, 5)[0]
    np.testing.assert_array_equal(data.query.neighbors, near)
    for text, name in zip(data.base.texts, data.base.names, strict=True):
        row = int(name[1:4])
        assert text == f"It does {row * 7919}."
    # Titles that several have are left out, and those of queries.
    expected = {name.split(": ")[1] for name in data.base.names} - {"the same"}
    assert set(data.pairs.texts) == expected
    answers = data.base.names[data.pairs.neighbors[:, 0]]
    assert [name.split(": ")[1] for name in answers] == list(data.pairs.texts)
    assert data.pairs.X.shape == (len(expected), minilm.DIMENSION)
    first = (letters / "debian" / debian.TEXTS).read_text().splitlines()[0]
    assert f"(sha256 {first}; " in data.protocol


def test_the_small_form_is_a_random_part(letters, client):
    client("apt-get", APT.format(texts=[many(60)]))
    small = datasets.load("debian-minilm-small", n_query=5)
    assert Letters.calls < 60
    everything = {*small.base.names, *small.query.names}
    assert len(everything) == 30
    assert everything != {f"p{row:03}" for row in range(30)}
    assert datasets.load("debian-minilm-small", n_query=5).base.names[0] == small.base.names[0]


def test_other_texts_are_embedded_anew(letters, client):
    client("apt-get", APT.format(texts=[many(40)]))
    before = datasets.load("debian-minilm", n_query=5)
    (letters / "debian" / debian.TEXTS).unlink()
    client("apt-get", APT.format(texts=[many(41)]))
    after = datasets.load("debian-minilm", n_query=5)
    assert (len(before.base), len(after.base)) == (35, 36)


def test_get_list_and_verify(letters, client):
    client("apt-get", APT.format(texts=[many(2_500)]))

    def run(*arguments):
        result = CliRunner().invoke(main, ["data", *arguments])
        assert "Traceback" not in result.output
        return result.exit_code, result.output

    def state(name):
        rows = json.loads(run("list", "--json")[1])["data_sets"]
        return next(row["state"] for row in rows if row["name"] == name)

    assert state("debian-minilm-small") == "to fetch"
    debian.FILES.obtain()
    assert state("debian-minilm-small") == "to make"
    code, output = run("get", "debian-minilm")
    assert (code, output.count("sha256, as fetched, right")) == (0, 1)
    assert state("debian-minilm") == "here"
    half = letters / "debian-minilm" / "questions.npy.part"
    half.touch()
    assert state("debian-minilm") == "to make"
    half.unlink()
    assert state("debian-minilm-small") == "to make"
    path = letters / "debian" / debian.TEXTS
    path.write_bytes(path.read_bytes() + b"x")
    code, output = run("verify", "debian-minilm")
    assert code == 1
    assert f"debian/{debian.TEXTS}: sha256" in output
    with pytest.raises(DataError, match="auxhash data get debian-minilm` fetches"):
        debian.load()
    assert run("get", "debian-minilm")[0] == 0
    assert run("verify")[0] == 0


def test_without_apt(letters, client):
    result = CliRunner().invoke(main, ["data", "get", "debian-minilm"])
    assert result.exit_code == 1
    assert "lists of apt, which Debian and its relatives have: apt-get is not installed" in (
        " ".join(result.output.split())
    )


def test_without_pytorch_nothing_is_fetched(folder, client, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    client("apt-get", "open('asked', 'w')")
    result = CliRunner().invoke(main, ["data", "get", "debian-minilm"])
    assert result.exit_code == 1
    assert install("embeddings") in result.output
    assert not folder.exists()


def test_senses():
    senses = wordnet.senses(GLOSSES.splitlines())
    assert senses == [
        embedded.Passage(
            "dog, domestic dog, friend", "a friend of man", ("the dog barked", "good dog")
        ),
        embedded.Passage("a, b, c, d, e, f, g, h, i, j", "ten letters", ("good dog",)),
    ]


def test_wordnet(letters, client, tmp_path, monkeypatch):
    gloss = '{0:05} 05 n 01 word{0} 0 000 | meaning {0}; "of {0}"; "to {0}"; "in vain"\n'
    lines = [gloss.format(row) for row in range(40)]
    content = {name: "".join(lines[part::4]).encode() for part, name in enumerate(wordnet.SHA256)}
    archive = tar_of(tmp_path / "w.tgz", content)
    client("npm", f"shutil.copy({str(archive)!r}, 'w.tgz')")
    source = Npm("w", "1", lambda path: archives.from_tar(path, content))
    files = tuple(File(name) for name in content)
    monkeypatch.setattr(wordnet, "FILES", Collection("wordnet", files, (source,)))
    data = datasets.load("wordnet-minilm", n_query=10)
    assert (len(data.base), len(data.pairs)) == (30, 60)  # "in vain" asks for none
    answers = data.base.texts[data.pairs.neighbors[:, 0]]
    assert [text.split()[1] for text in answers] == [text.split()[1] for text in data.pairs.texts]
    assert {name.removeprefix("word") for name in data.base.names} == {
        text.split()[1] for text in data.base.texts
    }


def test_real_texts(real):
    """So many examples find their definition among ten, if the small form is in the cache."""
    real("wordnet-minilm-small", made=True)
    data = datasets.load("wordnet-minilm-small")
    assert (len(data.base), len(data.query), len(data.pairs)) == (4_500, 500, 1_913)
    np.testing.assert_allclose(np.linalg.norm(data.base.X, axis=1), 1, atol=1e-5)
    first = neighbors.nearest(data.base.X, data.pairs.X, 10)[0]
    assert (first == data.pairs.neighbors).any(axis=1).mean() == pytest.approx(0.305, abs=0.005)
