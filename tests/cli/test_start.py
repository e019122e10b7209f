"""Starting, helping, failing and completing."""

import json
import warnings

import click
import pytest
from click.testing import CliRunner

from auxhash.cli import group, main
from auxhash.compute import clock
from auxhash.compute.version import __version__
from tests.programs import run_python


def commands(command=main, path=()):
    """Every command with its path, the main one included."""
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_help_explains(path, command):
    result = CliRunner().invoke(main, [*path, "--help"])
    assert result.exit_code == 0
    assert all(len(line) <= 100 for line in result.output.splitlines())
    if path[:1] != ("data",) or len(path) == 1:
        assert "auxhash " + " ".join(path) in command.help


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_results_come_as_json(path, command):
    if path != ("completion",) and not isinstance(command, click.Group):
        assert "--json" in [name for option in command.params for name in option.opts]


def test_version():
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_starting_is_quick():
    """Neither the package nor --help loads Numba or scikit-learn."""
    code = (
        "import sys, auxhash, auxhash.cli;"
        "from click.testing import CliRunner;"
        "run = lambda *a: CliRunner().invoke(auxhash.cli.main, [*a, '--help']);"
        "[run(*a) for a in ((), *((name,) for name in auxhash.cli.main.commands))];"
        "heavy = 'numba', 'numpy', 'rich', 'safetensors', 'scipy', 'sklearn';"
        "print([m for m in heavy if m in sys.modules])"
    )
    assert run_python(code).strip() == "[]"


HEAVY = ("PIL", "faiss", "matplotlib", "numba", "pandas", "pyarrow", "safetensors")
HEAVY += ("scipy", "sklearn")

MAY_IMPORT = [  # in the order in which one process runs them: what is imported stays
    ("index c.npy -o c.index --bits 12", set()),
    ("index c.npy -o named.index --bits 12 --ids labelled.txt", set()),
    ("search c.index c.npy -k 3 --json", set()),
    ("search named.index c.npy --radius 2", set()),
    ("search c.index c.npy --rerank features.npy --query-vectors features.npy", set()),
    ("store push sqlite:///c.db c.npy --bits 12", set()),
    ("store search sqlite:///c.db c.npy -k 3", set()),
    ("store verify sqlite:///c.db c.npy", set()),
    ("add c.index c.npy", set()),
    ("remove c.index 3 4", set()),
    ("inspect c.index", set()),
    ("inspect c.npy --bits 12", set()),
    ("encode small.safetensors features.npy -o d.npy", set()),
    ("search c.index queries.npy --model small.safetensors", set()),
    ("inspect small.safetensors", set()),
    ("index c.npy -o rough.index --bits 12 --approximate", {"faiss"}),
]


def test_commands_import_only_what_they_need(here, run, model):
    """scikit-learn takes longer to import than most searches take; so do pictures and plots."""
    run("encode", model, "features.npy", "-o", "c.npy")
    (here / "labelled.txt").write_text("\n".join(f"n{i}" for i in range(120)))
    code = (
        "import json, shlex, sys;"
        "from click.testing import CliRunner;"
        "from auxhash.cli import main;"
        "heavy, *lines = [json.loads(a) for a in sys.argv[1:]];"
        "ran = lambda line: CliRunner().invoke(main, shlex.split(line)).output;"
        "print(json.dumps([[ran(a), [m for m in heavy if m in sys.modules]] for a in lines]))"
    )
    arguments = [json.dumps(part) for part in (HEAVY, *(line for line, _ in MAY_IMPORT))]
    answers = json.loads(run_python(code, *arguments))
    for (line, allowed), (said, imported) in zip(MAY_IMPORT, answers, strict=True):
        assert "Error" not in said, f"{line}\n{said}"
        assert set(imported) <= allowed, line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ftt"], "No such command 'ftt'. Did you mean 'fit'?"),
        (["data", "lsit"], "No such command 'lsit'. Did you mean 'list'?"),
        (["zzz"], "No such command 'zzz'."),
        (["fit"], "Missing argument 'FEATURES'"),
        (["fit", "a.npy"], "Missing option '-o'"),
        (["search", "a", "b", "-k", "many"], "'many' is not a valid integer"),
        (["fit", "a.npy", "-o", "m", "--similar", "x"], "'x' is neither a whole number nor all"),
        (["fit", "a.npy", "-o", "m", "--auto-seconds", "9"], "--auto-seconds is for --auto, which"),
        (["fit", "a.npy", "-o", "m", "--init", "m", "--auto"], "there is none to --auto"),
        (["fit", "a.npy", "-o", "m", "--seed", "-1"], "-1 is not in the range"),
        (["index", "a.npy", "-o", "i", "--bits", "0"], "0 is not in the range"),
        (["search", "a", "b", "-k", "3", "-r", "2"], "within it: leave out -k"),
        (["search", "a", "b", "-r", "2", "--rerank", "v.npy"], "within it: leave out --rerank"),
        (
            ["fit", "a", "-o", "m", "--prefixes", "a,8"],
            "'a,8' must be whole numbers, such as 32,64",
        ),
        (["search", "a", "b", "--metric", "cosine"], "--metric is for --rerank VECTORS"),
        (["search", "a", "b", "--query-vectors", "v.npy"], "is for --rerank VECTORS"),
        (["search", "a", "b", "--candidates", "9"], "--candidates is for --rerank"),
        (["search", "a", "b", "--rerank", "outputs"], "--rerank outputs needs the --model"),
        (["search", "a", "b", "--rerank", "v.npy"], "needs the queries' vectors: --query-vectors"),
        (["remove", "i"], "say which: IDS, or --ids FILE"),
        (["completion", "powershell"], "is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_wrong_use_is_code_2(arguments, message):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert message in result.output


@click.group(cls=group.Commands)
@click.option("--debug", is_flag=True)
def failing(debug):
    pass


@failing.command()
@click.argument("kind")
def fail(kind):
    known = {"user": ValueError("wrong\nsecond line"), "bug": KeyError("lost")}
    known |= {"memory": MemoryError("too much"), "pipe": BrokenPipeError(32, "gone")}
    raise known[kind]


@failing.command()
@click.option("--json", "as_json", is_flag=True)
def compile_two(as_json):
    for _ in range(2):
        clock.compiling.start()
        clock.compiling.stop()
    click.echo("done")


@pytest.mark.parametrize(("options", "message"), [([], group.COMPILING + "\n"), (["--json"], "")])
def test_compiling_is_told_once_on_stderr(monkeypatch, options, message):
    monkeypatch.setattr(group, "announce_compiling", clock.announce_compiling)
    result = CliRunner().invoke(failing, ["compile-two", *options])
    assert (result.stdout, result.stderr) == ("done\n", message)


def test_problems_are_told_in_one_line():
    for kind, message in [
        ("user", "Error: wrong\n"),
        ("memory", "Error: not enough memory: too much\n"),
        ("bug", "Error: this is a fault of auxhash, not yours: KeyError: 'lost' (auxhash --debug"),
    ]:
        result = CliRunner().invoke(failing, ["fail", kind])
        assert result.exit_code == 1
        assert result.output.startswith(message)
        assert result.output.count("\n") == 1
    assert CliRunner().invoke(failing, ["fail", "pipe"]).exit_code == 1


def test_debug_shows_where():
    for kind, error in (("user", ValueError), ("bug", KeyError)):
        result = CliRunner().invoke(failing, ["--debug", "fail", kind])
        assert isinstance(result.exception, error)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_AUXHASH_COMPLETE" in result.output


def test_the_shell_completes_commands_and_options():
    def completed(words):
        environment = {
            "_AUXHASH_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        result = CliRunner().invoke(main, env=environment, prog_name="auxhash")
        return [line.split(",")[1] for line in result.output.splitlines()]

    assert completed("auxhash e") == ["encode", "evaluate", "export"]
    assert "--hash-function" in completed("auxhash fit --ha")


@pytest.mark.parametrize("options", [(), ("--debug",)])
def test_ctrl_c_exits_with_130(options, monkeypatch):
    def stopped(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(group.Commands, "resolve_command", stopped)
    result = CliRunner().invoke(main, [*options, "data"])
    assert result.exit_code == 130
    assert result.stderr.endswith("Interrupted.\n")
    assert ("Traceback" in result.stderr) == bool(options)


def test_a_command_that_trains_several_models_stops_at_ctrl_c():
    """Each fit takes it for itself, and keeps what it has: the next one must not begin."""
    from auxhash import TrainingInterrupted

    with pytest.raises(click.exceptions.Exit) as stopped, group.problems_in_one_line(debug=False):
        warnings.warn("interrupted after step 3", TrainingInterrupted, stacklevel=1)
    assert stopped.value.exit_code == 130
