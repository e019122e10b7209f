"""completion: let the shell complete commands and options."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete auxhash's commands and options.

    \b
    Put it where your shell looks for it at its start:
      bash   auxhash completion bash >> ~/.bashrc
      zsh    auxhash completion zsh >> ~/.zshrc
      fish   auxhash completion fish > ~/.config/fish/completions/auxhash.fish
    \b
    Example:
      auxhash completion bash
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None  # click has all of SHELLS
    click.echo(shell_class(ctx.find_root().command, {}, "auxhash", "_AUXHASH_COMPLETE").source())
