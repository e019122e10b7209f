"""The README's code runs as it stands there."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_code_blocks_run(tmp_path, monkeypatch, briefly_refined):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert names["codes"].shape == (297, 4)
    assert names["precision"] > 0.8
    assert names["path"][-1][2] == 0
