"""Programs in a Python process of their own."""

import os
import subprocess
import sys
import textwrap


def run_python(code, *arguments, **environment):
    """Return what a program prints; a test fails where the program does, and shows its errors."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    settings = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=settings)
    assert done.returncode == 0, done.stderr
    return done.stdout
