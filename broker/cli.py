"""The command `barnabas`: what it offers, and how its failures are told.

Each subcommand imports what it needs when it runs, so that the broker starts without Spark and
`--help` without either.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from broker.analyze import add_archive_arguments, add_spark_arguments
from broker.analyze import add_arguments as add_analyze_arguments
from broker.dump_log.arguments import add_arguments as add_dump_log_arguments
from broker.errors import StartupError

HOME_VARIABLE = "BARNABAS_HOME"

_EXIT_FAILURE = 1
_EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    parsed = _parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
    except StartupError as error:
        print(error, file=sys.stderr)
        return _EXIT_FAILURE
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    return status


def run_broker(parsed: argparse.Namespace) -> int:
    from broker.logging_setup import set_up_logging
    from broker.settings import load_settings

    home = _home()
    settings = load_settings(parsed.file or _default_file(home), parsed.override, home=home)
    set_up_logging(parsed.log_level)

    from broker.server import run

    return run(settings)


def run_config(parsed: argparse.Namespace) -> int:
    from broker import config_command
    from broker.settings import load_settings

    if parsed.markdown:
        config_command.write(config_command.markdown())
        return 0
    home = _home()
    settings = load_settings(parsed.file or _default_file(home), parsed.override, home=home)
    return config_command.run(parsed, settings)


def _home() -> Path:
    """Where relative directories start: the project when its script runs us, else right here."""
    return Path(os.environ.get(HOME_VARIABLE) or Path.cwd())


def _default_file(home: Path) -> Path | None:
    if HOME_VARIABLE not in os.environ:
        return None
    file = home / "config" / "server.properties"
    return file if file.exists() else None


class _Version(argparse.Action):
    """Prints the installed version; reading it takes an import that no other command needs."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            shown = version("barnabas")
        except PackageNotFoundError:
            shown = "(not installed)"
        print(f"barnabas {shown}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="barnabas", description="A Kafka-compatible broker, and Spark on its log directories."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_broker(commands.add_parser("broker", help="run a broker in the foreground"))
    _add_config(commands.add_parser("config", help="show the settings and what they are now"))
    add_analyze_arguments(commands.add_parser("analyze", help="ask log directories what they hold"))
    add_spark_arguments(
        commands.add_parser("spark", help="run a command that uses Spark: Python, a notebook")
    )
    add_archive_arguments(
        commands.add_parser("spark-archive", help="write the code that Spark executors need")
    )
    add_dump_log_arguments(commands.add_parser("dump-log", help="show what files of logs hold"))
    return parser


def _add_broker(command: argparse.ArgumentParser) -> None:
    from broker.logging_setup import LEVELS

    command.description = (
        "Run a broker in the foreground until Ctrl-C or SIGTERM. Settings come from FILE, from"
        " KAFKA_* environment variables (KAFKA_LOG_DIRS is log.dirs) and from --override, the"
        " later winning over the earlier. Without zookeeper.connect the broker brings a ZooKeeper"
        " of its own."
    )
    command.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="properties file with settings"
    )
    _add_override(command)
    command.add_argument(
        "--log-level",
        metavar="LEVEL",
        type=str.upper,
        choices=LEVELS,
        help=f"{', '.join(LEVELS)}; default: $BARNABAS_LOG_LEVEL, else INFO",
    )
    command.set_defaults(run=run_broker)


def _add_config(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show every setting with its type, default and current value, as a broker started with the"
        " same FILE, environment and overrides would have them; or all that is known of the NAMEs."
        " Passwords are hidden."
    )
    command.add_argument(
        "names", metavar="NAME", nargs="*", help="settings to explain, of the broker or of topics"
    )
    command.add_argument("--file", metavar="FILE", type=Path, help="properties file with settings")
    _add_override(command)
    command.add_argument(
        "--markdown", action="store_true", help="write docs/configuration.md to standard output"
    )
    command.set_defaults(run=run_config)


def _add_override(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--override",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set one setting; may be given many times",
    )
