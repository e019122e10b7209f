"""A user without the checkout: the demonstration, the README, the first page, a service, types."""

import json
import re
import shutil
import subprocess
import sys
import time
from urllib.request import Request, urlopen

import numpy as np
import pytest

from auxhash.experiments.datasets.fetch import cache
from tests import pages
from tests.release.conftest import ROOT

README = (ROOT / "README.md").read_text("utf-8")
# Runs examples of a page in one namespace; `auxhash` is the installed command.
RUNNER = """
import contextlib, io, json, shlex, subprocess, sys
names, outputs = {"__name__": "page"}, []
for kind, code in json.load(open("examples.json")):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if kind == "python":
            exec(code, names)
        else:
            words = shlex.split(code, comments=True)
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            done = subprocess.run(words, text=True, **pipes)
            assert done.returncode == 0, done.stdout
            print(done.stdout, end="")
    outputs.append(out.getvalue())
json.dump(outputs, open("outputs.json", "w"))
"""
# Ten clusters in place of the README's data set; the name of a point says which is its own.
MADE = """
import numpy as np
from auxhash import datasets
from auxhash.datasets import Dataset, Points
rng, kind = np.random.default_rng(0), np.arange(800) % 10
X = rng.normal(size=(10, 40))[kind] + 0.2 * rng.normal(size=(800, 40))
points = Points(X, names=np.array([f"kind {k}" for k in kind], object))
base, query = points.take(np.arange(600)), points.take(np.arange(600, 800))
datasets.load = lambda name: Dataset(name, base, base, query, "")
"""


def test_the_demonstration(installed):
    said, _ = installed.run("auxhash", "demo")
    assert re.search(r"★ MACrefined, kernels .* \.9\d\d", said)
    assert "<svg" in (installed.work / "auxhash-demo.html").read_text("utf-8")


def test_the_example_of_the_readme(installed):
    [(_, code, _)] = pages.examples(README)
    said, _ = installed.run(installed.python, "-c", MADE + code)
    assert said.split() == ["kind", "9"] * 3 + ["kind", "5"] * 3


def test_the_example_of_the_readme_on_its_data(installed):
    compared = pages.need(pages.DEBIAN)
    [(_, code, printed)] = pages.examples(README)
    said, _ = installed.run(installed.python, "-c", code, AUXHASH_DATA=str(cache.folder()))
    pages.check(code, printed if compared else "", said)


def test_the_first_page_of_the_documentation(installed):
    examples = list(pages.examples((ROOT / "docs/start.md").read_text("utf-8")))
    programs = [(kind, code) for kind, code, _ in examples]
    (installed.work / "examples.json").write_text(json.dumps(programs))
    installed.run(installed.python, "-c", RUNNER, COLUMNS="80", PYTHONUNBUFFERED="1")
    outputs = json.loads((installed.work / "outputs.json").read_text())
    for (_, code, printed), output in zip(examples, outputs, strict=True):
        pages.check(code, printed, output)


def test_types_are_complete_for_a_user(installed):
    """mypy --strict of the README's example, of public names by all their paths, of examples/."""
    [(_, code, _)] = pages.examples(README)
    names = (
        "import auxhash\n"
        "import auxhash.index.rerank\n"
        "from auxhash import HammingIndex, index\n"
        "from auxhash.zstep.quad import Quad\n"
        "from auxhash.index import HammingIndex as Same\n\n"
        "one: HammingIndex = Same(8)\n"
        "other: index.HammingIndex = auxhash.index.HammingIndex(8)\n"
        "Quad(start='eigenvector')\n"
    )
    (installed.work / "readme.py").write_text(code)
    (installed.work / "names.py").write_text(names)
    (installed.work / "wrong.py").write_text("from auxhash.zstep.quad import Quad\n\nQuad(start=3)")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable"]
    said, _ = installed.run(*mypy, installed.python, "readme.py", "names.py")
    assert "Success" in said
    others = "--ignore-missing-imports", "--disable-error-code=import-untyped"  # without types
    said, _ = installed.run(*mypy, installed.python, *others, *(ROOT / "examples").glob("*.py"))
    assert "Success" in said
    with pytest.raises(AssertionError, match="incompatible type"):
        installed.run(*mypy, installed.python, "wrong.py")


def asked(service, *command):
    """Start a service by a command, and ask it for its pages and for a search."""
    with subprocess.Popen(
        command,
        cwd=service.work,
        env=service.environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            url = re.match(r"http://\S+/", process.stdout.readline())[0]
            for page in ("readyz", "", "static/page.css", "static/page.js", "docs", "openapi.json"):
                for _ in range(600):
                    try:
                        assert urlopen(url + page).read()
                        break
                    except OSError:
                        assert page == "readyz"  # until the store is open
                        time.sleep(0.1)
                else:
                    raise AssertionError(page)
            head = {"Content-Type": "application/json"}
            for method, path, body in (
                ("PUT", "points", {"points": [{"id": 7, "code": "f00f"}]}),
                ("POST", "points/query", {"codes": ["f00e"], "k": 1}),
            ):
                request = Request(url + path, json.dumps(body).encode(), head, method=method)
                answer = json.loads(urlopen(request).read())
            [result] = answer["results"]
            assert result["hits"] == [{"id": 7, "distance": 1}]
        finally:
            process.terminate()


SERVE = "auxhash serve --store sqlite:///items.db --bits 16 --port 0 --no-open"


def test_the_service(service):
    asked(service, *SERVE.split())


# Binds folders, so that nothing in them can be written to.
CLOSED = """
set -e
for folder in "$@"; do mount --bind "$folder" "$folder"; mount -o remount,bind,ro "$folder"; done
for folder in "$@"; do if touch "$folder/written" 2> /dev/null; then exit 9; fi; done
cd "$WORK"
"""
READ_ONLY = (
    CLOSED
    + """
auxhash encode model.safetensors X.npy -o codes.npy
auxhash index codes.npy --bits 16 -o codes.index
auxhash search codes.index X.npy --model model.safetensors -k 3
auxhash fit X.npy -o again.safetensors --bits 8 --steps 1
auxhash demo
python -c "import numpy, auxhash; X = numpy.load('X.npy'); y = numpy.arange(60) % 3; \
auxhash.MACHash(8, max_iter=2, refine=None).fit(X, y)" 2>&1
"""
)


@pytest.fixture
def namespace():
    """The words before a command that may mount folders of its own."""
    words = ["unshare", "--mount", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"]).returncode:
        pytest.skip("needs the right to make namespaces")
    return words


def closed(home):
    """Return the folders that are not to be written to, without what other tests compiled."""
    for path in home.rglob("__pycache__/*.nb?"):
        path.unlink()
    return [str(home / "venv"), str(home / "user")]


def test_a_service_where_nothing_can_be_written_to(service, namespace):
    script = f"WORK={service.work}\n{CLOSED}\nrm -f items.db\nexec {SERVE}"
    asked(service, *namespace, "bash", "-c", script, "bash", *closed(service.home))


def test_site_packages_and_home_that_cannot_be_written_to(installed, namespace):
    """Kernels are compiled in memory, as in a container, and each process says so once."""
    work = installed.work
    np.save(work / "X.npy", np.random.default_rng(0).normal(size=(60, 5)))
    installed.run("auxhash", "fit", "X.npy", "-o", "model.safetensors", "--bits", "16")
    folders = closed(installed.home)
    said, warned = installed.run(
        *namespace, "bash", "-c", READ_ONLY, "bash", *folders, WORK=str(work)
    )
    assert "3 nearest of 60 codes" in said
    assert "no locator available" not in said + warned
    assert said.count("compiled kernels are not kept") == 1, said  # by the program
    assert "★ MACrefined" in said
    assert warned.count("compiled kernels are not kept") == 2, warned  # by `fit` and by `demo`
