"""A Streamlit server of one's own, for as long as a block runs."""

import http.client
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic

from tests.sources import ROOT

HOST = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 10
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Server:
    """A running server: where its page is, the file with all that it printed, and its process."""

    url: str
    log: Path
    pid: int = 0

    def printed(self) -> str:
        """All that the server printed up to now, both streams."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def serve(script: Path, **environment: str) -> Iterator[Server]:
    """Run a Streamlit script on a free port of this machine, with the project's settings; stop it at the end.

    Args:
        script: the file.
        **environment: variables that the server gets besides those of this process.
    """
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={port}", "--server.headless=true"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=server_environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        server = Server(f"http://{HOST}:{port}", path, process.pid)
        try:
            wait_until_healthy(server, port, process)
            yield server
        finally:
            stop(process)


def server_environment() -> dict[str, str]:
    """The environment with the checkout importable and without a person's own Streamlit settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    return own | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def wait_until_healthy(server: Server, port: int, process: subprocess.Popen[bytes]) -> None:
    """Ask the health endpoint until it says ok, the process ends or the time is over."""
    deadline = monotonic() + START_SECONDS
    between = Event()
    while not healthy(port):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with code {process.returncode}:\n{server.printed()}")
        if monotonic() > deadline:
            raise TimeoutError(f"the server was not ready after {START_SECONDS} s:\n{server.printed()}")
        between.wait(POLL_SECONDS)


def healthy(port: int) -> bool:
    """Whether the server answers its health endpoint with success."""
    connection = http.client.HTTPConnection(HOST, port, timeout=1)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server, firmly if it does not go by itself."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
