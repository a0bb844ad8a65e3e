"""
The exit codes of the commands that only read.
"""

import errno
import os
import sys
import traceback
from http import HTTPStatus
from typing import Any, ClassVar, Final

import click

from placement_ac.core.api.errors import ApiError, PlacementAcError, UnusableArgument
from placement_ac.core.api.printable import one_line
from placement_ac.observability import logs

PYTHONS_CODE: Final = 1
"""Python's exit code after an exception that nobody has handled."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as in shells."""


class ReadCommand(click.Command):
    """A command whose errors have one exit code; that of usage errors is click's, as for every command."""

    error_code: ClassVar[int] = PYTHONS_CODE

    def invoke(self, ctx: click.Context) -> Any:
        logs.configure("text", "error")  # to stderr: stdout is for the answer
        try:
            return super().invoke(ctx)
        except PlacementAcError as error:
            raise self._coded(_in_click(error, ctx)) from None
        except click.ClickException as error:
            raise self._coded(error) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno is None:
                self._exit_with_traceback()
                raise
            _drop_unprintable_output()
            if error.errno == errno.EPIPE:  # the reader has closed the pipe, and wants no message
                raise click.exceptions.Exit(self.error_code) from None
            raise self._coded(click.ClickException(one_line(str(error)))) from None
        except (click.exceptions.Exit, click.exceptions.Abort):
            raise
        except Exception:  # a bug: with Python's exit code, `plan` would say that something changes
            self._exit_with_traceback()
            raise

    def _exit_with_traceback(self) -> None:
        """Report the error that is being handled, and exit with our code; Python would exit with its own."""
        if self.error_code != PYTHONS_CODE:
            traceback.print_exc()
            raise click.exceptions.Exit(self.error_code) from None

    def _coded(self, error: click.ClickException) -> click.ClickException:
        if not isinstance(error, click.UsageError):
            error.exit_code = self.error_code  # type: ignore[misc]  # click reads it of the instance
        return error


def _in_click(error: PlacementAcError, ctx: click.Context) -> click.ClickException:
    """Return an error as click's: one of usage for a value that the caller has given."""
    text = str(error)
    if isinstance(error, ApiError) and error.status == HTTPStatus.UNAUTHORIZED:
        text = f"log in again: the API server does not accept your credentials ({text})"
    message = "\n".join(map(one_line, text.splitlines()))
    is_of_usage = isinstance(error, UnusableArgument)
    return click.UsageError(message, ctx) if is_of_usage else click.ClickException(message)


def _drop_unprintable_output() -> None:
    """Flush the outputs or drop their buffers: else Python would flush again at exit and exit with 120."""
    for output in (sys.stdout, sys.stderr):
        try:
            output.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, output.fileno())
            os.close(nowhere)
