"""`securebench view`: a local page over a directory of runs."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import click


@click.command()
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: a free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON.")
def command(directory: Path, port: int, open_browser: bool, as_json: bool) -> int:
    """Look at the runs beneath a directory: list, reports, comparisons, and runs under way as they go.

    Served to this machine alone, at an address that holds a secret and changes with every start. Nothing is written,
    nothing is loaded from elsewhere. Ctrl-C ends it."""
    import anyio

    from securebench.cli._text import visible
    from securebench.cli._trust import trusted_keys
    from securebench.errors import ConfigError
    from securebench.reports.view.server import open_listener, serve

    if not directory.is_dir():
        raise ConfigError(f"{directory}: no such directory")
    trusted = trusted_keys()
    try:
        listener = open_listener(port)
    except OSError as error:
        raise ConfigError(f"port {port} of this machine cannot be used: {error.strerror}; choose another") from error
    with listener:
        token = secrets.token_urlsafe(24)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/{token}/"
        click.echo(json.dumps({"url": address}) if as_json else address)
        if not as_json:
            click.echo(visible(f"shows the runs beneath {directory}; Ctrl-C ends it"), err=True)
        if open_browser:
            import webbrowser

            webbrowser.open(address)
        anyio.run(serve, listener, directory.absolute(), token, trusted)
    return 0
