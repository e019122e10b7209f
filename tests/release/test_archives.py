"""The wheel and the source archive hold what is tracked, the stubs, and nothing else."""

import importlib.util
import subprocess
import tarfile
import zipfile

from tests.release.conftest import ROOT


def tracked(*folders):
    """Files that are in the repository, by their paths there."""
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_is_the_package_and_its_stubs(wheel):
    names = {name for name in contents(wheel) if ".dist-info/" not in name}
    package = {path.removeprefix("src/") for path in tracked("src")}
    stubs = {name for name in names if name.startswith("auxhash-stubs/")}
    assert names - stubs == package
    for kind in (".cu", ".cuh", ".css", ".js", ".html", ".svg", "py.typed"):  # what is no program
        assert any(name.endswith(kind) for name in package), kind
    assert wheel.name.endswith("-py3-none-any.whl")


def test_every_short_name_has_a_stub_that_names_its_module(wheel):
    files = contents(wheel)
    assert files["auxhash-stubs/py.typed"] == b"partial\n"
    expected = {f"auxhash-stubs/{stub}": home for stub, home in hook().stubs(ROOT / "src")}
    found = {name for name in files if name.startswith("auxhash-stubs/")}
    assert found == {*expected, "auxhash-stubs/py.typed"}
    for name, home in expected.items():
        assert files[name].decode() == f"from {home} import *\n"
        path = home.replace(".", "/")
        assert f"{path}.py" in files or f"{path}/__init__.py" in files, home


def test_the_source_archive_is_the_checkout(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == tracked() | {"PKG-INFO"}
