import subprocess
import sys

from click.testing import CliRunner

from auxhash import __version__
from auxhash.cli import main


def test_demo():
    result = CliRunner().invoke(main, ["demo", "--bits", "8"])
    assert result.exit_code == 0, result.output
    for text in ("two-step", "MAC", "descent", "precision at 100", "violations 0"):
        assert text in result.output


def test_help_and_version():
    assert "auxhash demo" in CliRunner().invoke(main, ["--help"]).output
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_starting_is_quick():
    """Neither the package nor --help loads Numba or scikit-learn."""
    code = (
        "import sys, auxhash, auxhash.cli;"
        "from click.testing import CliRunner;"
        "CliRunner().invoke(auxhash.cli.main, ['--help']);"
        "heavy = 'numba', 'numpy', 'safetensors', 'scipy', 'sklearn';"
        "print([m for m in heavy if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
