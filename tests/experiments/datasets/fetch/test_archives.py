import gzip
import zipfile

import pytest

from auxhash.experiments.datasets.fetch import archives
from tests.experiments.datasets.made import everything_in, tar_of


def contents(members):
    return {name: stream.read() for name, stream in members}


def test_only_wanted_regular_files_come_out(tmp_path):
    archive = tar_of(
        tmp_path / "a.tar.gz",
        {"x/one": b"1", "x/y/two": b"2", "x/three": b"3", "z/one": b"later"},
        links={"link/two": "/etc/passwd"},
    )
    assert contents(archives.from_tar(archive, ["one", "two"])) == {"one": b"1", "two": b"2"}


@pytest.mark.parametrize("evil", ["../../evil", "/tmp/evil", "a/../../../evil", "..\\evil"])
def test_names_in_an_archive_lead_nowhere(tmp_path, evil):
    home = tmp_path / "home"
    home.mkdir()
    archive = tar_of(home / "a.tar.gz", {evil: b"evil", "good": b"good"})
    files = contents(archives.from_tar(archive, ["good", "evil"]))
    assert set(files) <= {"good", "evil"}  # bare names only
    assert everything_in(tmp_path) == ["home/a.tar.gz"]


@pytest.mark.parametrize("prefix", ["x/", "../../", "/tmp/"])
def test_zip_gives_bare_names(tmp_path, prefix):
    home = tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(home / "a.whl", "w") as archive:
        archive.mkdir("two")
        for name, content in {"one": b"1", "two": b"2", "three": b"3", "z/one": b"later"}.items():
            archive.writestr(prefix + name, content)
    files = contents(archives.from_zip(home / "a.whl", ["one", "two"]))
    assert files == {"one": b"1", "two": b"2"}
    assert everything_in(tmp_path) == ["home/a.whl"]


def test_gzip_is_named_without_its_ending(tmp_path):
    (tmp_path / "data.gz").write_bytes(gzip.compress(b"data"))
    assert contents(archives.from_gzip(tmp_path / "data.gz")) == {"data": b"data"}


def test_debian_packages_go_through_dpkg(tmp_path, client):
    tar_of(tmp_path / "p.deb", {"./usr/share/one": b"1", "./usr/two": b"2"})
    client(
        "dpkg-deb",
        "import gzip\nassert sys.argv[1] == '--fsys-tarfile'\n"
        "sys.stdout.buffer.write(gzip.open(sys.argv[2]).read())",
    )
    assert contents(archives.from_deb(tmp_path / "p.deb", ["one"])) == {"one": b"1"}


def test_a_package_that_dpkg_cannot_read(tmp_path, client):
    tar_of(tmp_path / "p.deb", {"one": b"1"})
    client(
        "dpkg-deb",
        "import gzip\nsys.stdout.buffer.write(gzip.open(sys.argv[2]).read())\nsys.exit(2)",
    )
    with pytest.raises(OSError, match=r"dpkg-deb could not read p\.deb"):
        contents(archives.from_deb(tmp_path / "p.deb", ["one"]))
