import hashlib

import numpy as np
import pytest

from auxhash.experiments.datasets.fetch import cache


def test_folder_follows_the_variable_then_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    assert cache.folder() == tmp_path
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setattr(cache.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "xdg" / "auxhash"
    monkeypatch.setattr(cache.sys, "platform", "darwin")
    assert cache.folder().parts[-3:] == ("Library", "Caches", "auxhash")
    monkeypatch.setattr(cache.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache.folder() == tmp_path / "local" / "auxhash"


def test_made_is_made_once_and_mapped(tmp_path):
    calls = []

    def make(path):
        calls.append(path)
        with path.open("wb") as out:
            np.save(out, np.arange(6))

    for _ in range(2):
        array = cache.obtain(tmp_path / "six.npy", make)
    assert len(calls) == 1
    assert isinstance(array, np.memmap)
    np.testing.assert_array_equal(array, np.arange(6))


def test_a_truncated_array_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(1000))
    content = (tmp_path / "a.npy").read_bytes()
    assert cache.fault(tmp_path / "a.npy") is None
    (tmp_path / "a.npy").write_bytes(content[:-100])
    with pytest.raises(ValueError, match=r"a\.npy is not a whole \.npy file"):
        cache.obtain(tmp_path / "a.npy", lambda path: None)


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_checksum(tmp_path, kind):
    content = bytes(range(256)) * 9000
    (tmp_path / "f").write_bytes(content)
    assert cache.checksum(tmp_path / "f", kind) == hashlib.new(kind, content).hexdigest()
