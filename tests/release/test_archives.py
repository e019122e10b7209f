"""The wheel and the source archive hold what is tracked, the stubs, and nothing else."""

import subprocess
import tarfile
import zipfile

import auxhash
from tests.release.conftest import ROOT


def tracked(*folders):
    """Files that are in the repository, by their paths there."""
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


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
    expected = {"auxhash-stubs/py.typed": b"partial\n"}
    for short, home in auxhash._MODULES.items():
        place = home.replace(".", "/")
        for path in files:
            if place != f"auxhash/{short}" and path.startswith((f"{place}.py", f"{place}/")):
                stub = path.replace(place, f"auxhash-stubs/{short}", 1).replace(".py", ".pyi")
                module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                if path.endswith(".py"):
                    expected[stub] = f"from {module} import *\n".encode()
    result = {name: text for name, text in files.items() if name.startswith("auxhash-stubs/")}
    assert result == expected


def test_the_source_archive_is_the_checkout(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == tracked() | {"PKG-INFO"}
