"""The files that `make dist` built, and an environment with the wheel and nothing else of ours."""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"


@dataclass
class Installed:
    """An environment in `home`, far from the checkout; programs run in `work`."""

    home: Path

    @property
    def work(self) -> Path:
        return self.home / "work"

    @property
    def python(self) -> Path:
        return self.home / "venv/bin/python"

    def environment(self, **more):
        """Nothing of this process but where programs and certificates are."""
        own = ("PYTHON", "AUXHASH", "NUMBA", "HOME", "XDG", "VIRTUAL_ENV", "COV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        path = os.pathsep.join([str(self.python.parent), kept["PATH"]])
        return {**kept, "PATH": path, "HOME": str(self.home / "user"), **more}

    def run(self, *command, **more):
        """Return what a program prints, and says on stderr; the test fails where it does."""
        done = subprocess.run(
            [*map(str, command)],
            cwd=self.work,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=3600,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout, done.stderr

    def install(self, what):
        self.run(self.python, "-m", "pip", "install", "--quiet", "--no-compile", what)


def built(pattern):
    archives = sorted(DIST.glob(pattern))
    if not archives:
        pytest.skip("make dist builds it")
    [path] = archives
    return path


@pytest.fixture(scope="session")
def wheel():
    return built("*.whl")


@pytest.fixture(scope="session")
def sdist():
    return built("*.tar.gz")


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """The wheel in an empty environment, in another folder."""
    home = tmp_path_factory.mktemp("elsewhere")
    (home / "work").mkdir()
    (home / "user").mkdir()
    venv.create(home / "venv", with_pip=True, symlinks=True)
    made = Installed(home)
    made.install(wheel)
    where, _ = made.run(made.python, "-c", "import auxhash; print(auxhash.__file__)")
    assert where.startswith(str(home / "venv"))
    assert sys.prefix not in where
    return made


@pytest.fixture(scope="session")
def service(installed, wheel):
    """The installation with what `auxhash serve` needs."""
    installed.install(f"{wheel}[serve]")
    return installed
