"""The Dockerfile without Docker: its commands run in a root folder that is made for them.

The folder has this machine's programs and Python, read-only. What `RUN` says is run in it; then all
but the volume and /tmp becomes read-only, and what `ENTRYPOINT`, `CMD` and `HEALTHCHECK` say is run
by the user that the file names, in a network of its own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release.conftest import ROOT

TOKEN = "a token of the container"
PATH = f"{sys.base_prefix}/bin:/usr/bin:/bin:/usr/sbin:/sbin"
# The image's root: $1; other arguments: the rest of the command.
MOUNTS = """
set -e
root=$1; shift
for folder in /usr /etc /bin /lib /lib64 $PYTHON; do
    [ -e $folder ] || continue
    mkdir -p $root$folder
    mount --bind $folder $root$folder
    mount -o remount,bind,ro $root$folder
done
for folder in /dev /proc; do mkdir -p $root$folder && mount --rbind $folder $root$folder; done
mkdir -p $root/tmp && mount -t tmpfs tmpfs $root/tmp && chmod 1777 $root/tmp
"""
BUILD = MOUNTS + 'exec chroot $root /bin/sh -c "$1"'
# Then the user's: the root becomes read-only, the volume stays. $UP starts the loopback interface.
SERVE = (
    "mount --bind $1 $1\n"
    + MOUNTS
    + """
mount --bind $root/data $root/data
mount -o remount,bind,ro $root
"$PYTHON/bin/python3" -c "$UP"
exec chroot $root /usr/bin/setpriv --reuid=$USER --regid=$GROUP --clear-groups --no-new-privs \\
    /bin/sh -c "cd $WORK; $1"
"""
)
UP = """
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1))
"""
ASKED = """
{serve} > /data/log 2>&1 &
for i in $(seq 300); do {health} 2> /dev/null && break; sleep 0.2; done
{health} && echo healthy
python -c '{ask}'
id -u; touch /written /opt/written 2>&1
ls /data
kill $!; wait $! ; echo stopped
"""
ASK = """
import urllib.request as web, urllib.error
open_ = lambda **head: web.urlopen(web.Request("http://127.0.0.1:8000/info", headers=head)).status
try: open_()
except urllib.error.HTTPError as error: print("without a token", error.code)
print("with it", open_(Authorization="Bearer " + open("/run/secrets/token").read().strip()))
"""


def instructions():
    """Each instruction of the Dockerfile with the rest of its line."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line]


def quoted(line):
    """A command in the form of a JSON list, for a shell."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in json.loads(line))


def copied(target):
    """Copy what the build may see: .dockerignore leaves out all but what it names."""
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        if line.startswith("!"):
            path = ROOT / line[1:]
            if path.is_dir():
                left_out = shutil.ignore_patterns("__pycache__")
                shutil.copytree(path, target / line[1:], ignore=left_out)
            else:
                shutil.copy(path, target)


def test_the_file_says_what_a_container_needs():
    result = dict(instructions())
    assert result["USER"] == "10001:10001"
    assert result["VOLUME"] == result["WORKDIR"] == "/data"
    assert "/readyz" in result["HEALTHCHECK"]
    assert '"--token-file", "/run/secrets/token"' in result["ENTRYPOINT"]
    order = [name for name, _ in instructions()]
    assert order.index("RUN") < order.index("USER")


@pytest.fixture
def contained(tmp_path):
    """Run a script in a namespace of mounts, with the root folder; what it prints."""
    namespaces = ["unshare", "--mount", "--net", "true"]
    if shutil.which("unshare") is None or os.geteuid() or subprocess.run(namespaces).returncode:
        pytest.skip("needs root that may make namespaces")
    root = tmp_path / "root"
    root.mkdir(mode=0o755)

    def run(script, command, *options, **environment):
        names = {"PYTHON": sys.base_prefix, "UP": UP, **environment}
        kept = {key: value for key, value in os.environ.items() if key.startswith(("PIP", "SSL"))}
        done = subprocess.run(
            ["unshare", "--mount", *options, "bash", "-c", script, "bash", root, command],
            env={"PATH": PATH, **kept, **names},
            capture_output=True,
            text=True,
            timeout=900,
        )
        return done.stdout + done.stderr

    return root, run


def test_its_commands_run_without_rights_on_a_root_that_is_read_only(contained):
    root, run = contained
    result = dict(instructions())
    source, target = result["COPY"].split()
    assert source == "."
    (root / target.strip("/")).mkdir()
    copied(root / target.strip("/"))
    (root / "opt").mkdir()
    said = run(BUILD, result["RUN"])
    assert (root / "opt/auxhash/bin/auxhash").exists(), said
    volume = root / result["VOLUME"].strip("/")
    user, group = result["USER"].split(":")
    assert volume.stat().st_uid == int(user)

    secrets = root / "run/secrets"
    secrets.mkdir(parents=True)
    (secrets / "token").write_text(TOKEN.replace(" ", "-"))
    variables = dict(pair.split("=", 1) for pair in result["ENV"].split())
    variables["PATH"] = variables["PATH"].replace("$PATH", PATH)
    health = quoted(result["HEALTHCHECK"].partition("CMD ")[2])
    serve = f"{quoted(result['ENTRYPOINT'])} {quoted(result['CMD'])}"
    command = ASKED.format(serve=serve, health=health, ask=ASK)
    names = {"USER": user, "GROUP": group, "WORK": result["WORKDIR"], **variables}
    said = run(SERVE, command, "--net", **names)
    log = volume / "log"
    said += log.read_text() if log.exists() else ""
    assert "healthy" in said, said
    assert "without a token 401" in said, said
    assert "with it 200" in said, said
    assert f"\n{user}\n" in said, said
    assert said.count("cannot touch") == 2, said
    assert "codes.db" in said
    assert "Traceback" not in said
    assert "stopped" in said
    assert Path(volume / "codes.db").stat().st_uid == int(user)
