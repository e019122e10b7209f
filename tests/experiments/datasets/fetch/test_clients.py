import pytest

from auxhash.experiments.datasets.fetch import clients


def test_npm(tmp_path, client):
    client("npm", "open('p-1.0.tgz', 'w').write(' '.join(sys.argv[1:]))")
    path = clients.npm_pack("p", "1.0", tmp_path)
    assert path == tmp_path / "p-1.0.tgz"
    assert path.read_text() == "pack p@1.0 --ignore-scripts --silent"


def test_pip_meets_our_backend_in_place_of_the_packages(tmp_path, client):
    client(
        "pip",
        "sys.path[:0] = os.environ['PYTHONPATH'].split(os.pathsep)\n"
        "from some_tool import build\n"
        "os.mkdir('meta')\n"
        "info = build.prepare_metadata_for_build_wheel('meta')\n"
        "assert build.get_requires_for_build_wheel() == []\n"
        "assert {'--no-deps', '--no-build-isolation'} < set(sys.argv)\n"
        "shutil.copy(f'meta/{info}/METADATA', 'a_b-2.tar.gz')",
    )
    path = clients.pip_download("a-b", "2", "some_tool.build", tmp_path)
    assert path.name == "a_b-2.tar.gz"
    assert path.read_text() == "Metadata-Version: 2.1\nName: a-b\nVersion: 2\n"


def test_wheels_are_only_downloaded(tmp_path, client):
    client("pip", "open('a_b-2-py3-none-any.whl', 'w').write(' '.join(sys.argv[1:]))")
    said = clients.pip_wheel("a-b", "2", tmp_path).read_text()
    assert said.startswith("download --no-deps --only-binary :all: ")
    assert said.endswith(" a-b==2")


def test_apt(tmp_path, client):
    client("apt-get", "open(sys.argv[2] + '_1_all.deb', 'w').write(sys.argv[1])")
    assert clients.apt_download("pack", tmp_path).read_text() == "download"


def test_lists_of_apt_are_fetched_into_the_folder(tmp_path, client):
    """All lists of descriptions, and nothing where apt keeps its own."""
    client(
        "apt-get",
        "settings = dict(word.split('=') for word in sys.argv[2:-1:2])\n"
        "assert sys.argv[1:-1:2] == ['-o'] * len(settings) and sys.argv[-1] == 'update'\n"
        "assert settings['Dir::Cache'] == os.getcwd()\n"
        "os.chdir(settings['Dir::State::lists'])\n"
        "for name in ('b_Translation-en', 'a_Translation-en', 'a_Packages'): open(name, 'w')",
    )
    lists = clients.apt_descriptions(tmp_path)
    names = ("a_Translation-en", "b_Translation-en")
    assert lists == [tmp_path / "lists" / name for name in names]


def test_a_client_that_is_not_there(tmp_path, client):
    with pytest.raises(OSError, match="npm is not installed"):
        clients.npm_pack("p", "1.0", tmp_path)


def test_a_client_that_fails_is_asked_twice_and_quoted(tmp_path, client):
    client("npm", "open('calls', 'a').write('x')\nsys.exit('first\\nno such package\\n\\n')")
    with pytest.raises(OSError, match="npm failed: no such package"):
        clients.npm_pack("p", "1.0", tmp_path)
    assert (tmp_path / "calls").read_text() == "xx"


def test_a_client_that_succeeds_with_nothing(tmp_path, client):
    client("npm", "pass")
    with pytest.raises(OSError, match="npm failed: it said nothing"):
        clients.npm_pack("p", "1.0", tmp_path)


def test_a_client_that_hangs(tmp_path, client, monkeypatch):
    monkeypatch.setattr(clients, "TIMEOUT_SECONDS", 0.2)
    client("npm", "import time\ntime.sleep(30)")
    with pytest.raises(OSError, match=r"npm gave no result within 0\.2 s"):
        clients.npm_pack("p", "1.0", tmp_path)
