import pytest

from auxhash.files import writing
from tests.datasets.made import everything_in


def test_writing_is_all_or_nothing(tmp_path):
    path = tmp_path / "deep" / "file"
    with writing(path) as temporary:
        temporary.write_bytes(b"old")
    with pytest.raises(KeyError), writing(path) as temporary:
        temporary.write_bytes({}["nothing to write"])
    assert path.read_bytes() == b"old"
    assert everything_in(tmp_path) == ["deep/file"]
