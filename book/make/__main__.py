"""Run one of the book's scripts: python -m book.make COMMAND [ARGUMENTS], from the repository."""

import sys
from importlib import import_module

import typer

# Only the module of the command is imported: a release needs no browser, a check no torch.
COMMANDS = {
    "execute": ("notebooks", "execute"),
    "smoke": ("notebooks", "smoke"),
    "check": ("check", "check"),
    "pdf": ("pdf", "pdf"),
    "address": ("address", "address"),
    "release": ("release", "release"),
}


def main() -> None:
    """Pass the arguments to the command that the first one names."""
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python -m book.make {{{','.join(COMMANDS)}}} [--help]")
    module, function = COMMANDS[sys.argv[1]]
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(getattr(import_module(f"book.make.{module}"), function))
    app(sys.argv[2:], prog_name=f"python -m book.make {sys.argv[1]}")


if __name__ == "__main__":
    main()
