"""A Ray cluster as the place where nodes are: found, watched, and reached through an actor on each.

The actor is a pipe and nothing else: it starts a process of ours with an environment of its own, without Ray's token,
and passes bytes on. Only bytes cross, in both directions."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import secrets
import socket
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread

from securebench._proc import TOOL_ENV, run_tool_sync, start
from securebench._removal import remove_tree
from securebench.engine.executors.processes import PASSED
from securebench.engine.executors.wire import Frame, Frames, encode_frame
from securebench.errors import ConfigError, InfrastructureError

_T = TypeVar("_T")
ROLE_LABEL = "securebench.role"
_OTHER = {"produce": "verify", "verify": "produce"}
_MODE, _TOKEN, _TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_LOOPBACK = "127.0.0.1"
_CLIENT = "ray://"
_ADDRESS = re.compile(r"auto|(ray://)?(\[[0-9a-fA-F:.%]+\]|[\w.-]+):\d{1,5}", re.ASCII)
_CHUNK = 1024 * 1024
_PENDING = 4 * _CHUNK
_PROBE_SECONDS = 40.0
ANSWER_SECONDS = 20.0
_LAST_WORDS = 4000
_SAID = 400
_FAREWELL = 30.0  # seconds for a node to clean up


def require_ray() -> Any:
    """The library. Raises ConfigError naming the extra."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "86400")  # Ray would end this process
    try:
        import ray
    except ImportError:
        raise ConfigError("executor ray needs Ray: pip install 'securebench[ray]'") from None
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # what goes wrong is said in our words
    library: Any = ray
    library._raylet.Config.initialize("")  # it has read the environment when it was imported, and never since
    return library


@asynccontextmanager
async def connected(address: str | None, *, unsafe: bool) -> AsyncIterator[Any]:
    """Ray, connected: to the cluster at `address`, or to one of this machine alone that ends with the context.

    Raises ConfigError, InfrastructureError; also for a cluster that lets in whoever asks, unless `unsafe`."""
    if address is not None:
        address = await anyio.to_thread.run_sync(_resolved, address)
    lets_in = address is not None and await anyio.to_thread.run_sync(_lets_in_whoever_asks, address)
    if lets_in and not unsafe:
        raise ConfigError(
            f"the Ray cluster at {address} lets in whoever asks: anybody who reaches it can run code on every node and "
            "change results. Start it with RAY_AUTH_MODE=token on every node (`ray get-auth-token --generate` makes "
            "one), or use --unsafe, which every record will say"
        )
    with _authenticated("disabled" if lets_in else "token", local=address is None):
        ray = require_ray()
        try:
            await anyio.to_thread.run_sync(_connect, ray, address)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError, OSError, ray.exceptions.RayError) as error:
            raise _no_answer(ray, address, error) from error
        session = _session(ray) if address is None else None
        try:
            if address is None:
                _require_loopback(ray)
            yield ray
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(ANSWER_SECONDS) as waited:
                await abandonable(ray.shutdown)
            if waited.cancelled_caught:
                atexit.unregister(ray.shutdown)  # it would wait again, and for ever
            if session is not None:
                _remove_session(session)


@cache
def _own_token() -> str:
    """One for this process: Ray reads it once."""
    return secrets.token_hex(32)


@contextmanager
def _authenticated(mode: str, *, local: bool) -> Iterator[None]:
    """Ray's token, demanded and given, unless the cluster knows none. A cluster of our own gets a new one; for another
    it is the operator's."""
    before = {name: os.environ.get(name) for name in (_MODE, _TOKEN, _TOKEN_PATH)}
    os.environ[_MODE] = mode
    if local:
        os.environ[_TOKEN] = _own_token()
        os.environ.pop(_TOKEN_PATH, None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _connect(ray: Any, address: str | None) -> None:
    from ray._private import services, worker

    # Its thread for what goes wrong elsewhere writes to our standard output, whatever it is told about logs.
    worker.listen_error_messages = lambda *_: None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "configure_logging": False}
    if address is not None:
        ray.init(address=address, namespace=f"securebench-{secrets.token_hex(8)}", **options)
        return
    # Ray takes loopback for a mistake and puts the public address in its place, and with it listens everywhere.
    resolve = services.resolve_ip_for_localhost
    services.resolve_ip_for_localhost = lambda host: host
    try:
        ray.init(address="local", include_dashboard=False, _node_ip_address=_LOOPBACK, **options)
    finally:
        services.resolve_ip_for_localhost = resolve


def _require_loopback(ray: Any) -> None:
    listening = sorted({node["NodeManagerAddress"] for node in ray.nodes()})
    if listening != [_LOOPBACK]:
        raise InfrastructureError(
            f"this Ray listens on {', '.join(listening)} and not on loopback only; use another one"
        )


def _session(ray: Any) -> Path:
    """Where a cluster of our own keeps its logs and sockets."""
    return Path(ray._private.worker.global_worker.node.get_session_dir_path())


def _remove_session(session: Path) -> None:
    latest = session.with_name("session_latest")
    with suppress(OSError):
        if latest.is_symlink() and latest.readlink().name == session.name:
            latest.unlink()
        remove_tree(session)


def _no_answer(ray: Any, address: str | None, error: object) -> InfrastructureError:
    where = f"no Ray cluster answers at {address or 'this machine'}"
    if re.search(r"InvalidAuthToken|Unauthenticated|UNAUTHENTICATED", str(error)):
        return InfrastructureError(f"{where} to this token: it has another one than {_TOKEN} or ~/.ray/auth_token")
    if "authentication token was found" in str(error):
        return InfrastructureError(f"{where} without its token: put it into {_TOKEN} or ~/.ray/auth_token")
    return InfrastructureError(
        f"{where}: {error}; is it running, is its token in {_TOKEN} or ~/.ray/auth_token, and is its Ray "
        f"{ray.__version__}?"
    )


def _resolved(address: str) -> str:
    """The address that is really meant, so that who is looked at is who is used. Raises ConfigError,
    InfrastructureError."""
    if not _ADDRESS.fullmatch(address):
        raise ConfigError(f"{address!r} is no address of a cluster: it is HOST:PORT, ray://HOST:PORT or auto")
    ray = require_ray()
    from ray._private import services

    try:
        if address == "auto":
            address = services.get_ray_address_from_environment(address, None)
        if not address.startswith(_CLIENT):
            address = services.canonicalize_bootstrap_address(address) or address
    except (ConnectionError, ValueError, OSError) as error:
        raise _no_answer(ray, address, error) from error
    if address.startswith(_CLIENT) and find_spec("grpc") is None:
        raise ConfigError(
            f"{address} needs Ray's client: pip install 'ray[client]'. Or start the run on a machine of the cluster, "
            "with its HOST:6379 or auto"
        )
    return address


def _lets_in_whoever_asks(address: str) -> bool:
    """Whether the cluster answers somebody without a token. Only a refusal says that it does not. Raises
    InfrastructureError."""
    env = {**TOOL_ENV, _MODE: "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    done = run_tool_sync([sys.executable, "-c", _PROBE, address], env=env, timeout=_PROBE_SECONDS)
    if done.status not in (0, _REFUSED):
        said = done.stdout.decode("utf-8", "replace").strip() or "it does not answer"
        raise _no_answer(require_ray(), address, said)
    return done.status == 0


_REFUSED = 3
_PROBE = f"""
import sys
from ray.exceptions import AuthenticationError
address = sys.argv[1]
try:
    if address.startswith("{_CLIENT}"):
        import grpc
        from ray.core.generated import ray_client_pb2 as words, ray_client_pb2_grpc as client
        server = client.RayletDriverStub(grpc.insecure_channel(address.removeprefix("{_CLIENT}")))
        asked = words.ClusterInfoRequest(type=words.ClusterInfoType.PING)
        server.ClusterInfo(asked, timeout=20, metadata=(("client_id", "securebench"),))
    else:
        from ray._raylet import GcsClient
        GcsClient(address=address).get_all_node_info(timeout=10)
except Exception as error:
    refused = isinstance(error, AuthenticationError) or "UNAUTHENTICATED" in str(error)
    print(" ".join(str(error).split())[:300])
    sys.exit({_REFUSED} if refused else 1)
"""


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node that Ray knows and that lives."""

    id: str
    name: str
    role: str  # as its label says
    cpus: float
    memory: int | None = None
    sharing: int = 1  # nodes on the same machine


def living_nodes(ray: Any) -> list[RayNode]:
    """Nodes that have processors to give; the others only hold the cluster together."""
    living = [node for node in ray.nodes() if node["Alive"] and float(node.get("Resources", {}).get("CPU", 0.0)) > 0]
    machines = Counter(node["NodeManagerAddress"] for node in living)
    found = []
    for node in living:
        resources, address = node["Resources"], node["NodeManagerAddress"]
        found.append(
            RayNode(
                node["NodeID"],
                f"{node.get('NodeName') or address}-{node['NodeID'][-8:]}",
                str(node.get("Labels", {}).get(ROLE_LABEL, "both")),
                float(resources["CPU"]),
                int(resources["memory"]) if "memory" in resources else None,
                machines[address],
            )
        )
    return found


async def abandonable(call: Callable[[], _T]) -> _T:
    """A call that may never return, in a thread that nobody waits for at the end."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_T] = loop.create_future()

    def settle(value: _T | None, error: BaseException | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(cast(_T, value))

    def work() -> None:
        value, error = None, None
        try:
            value = call()
        except Exception as raised:  # noqa: BLE001 — raised where it is waited for
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, daemon=True).start()
    return await result


async def seen_nodes(ray: Any) -> list[RayNode] | None:
    """The same, without waiting long; None where the cluster's head does not answer."""
    with anyio.move_on_after(ANSWER_SECONDS):
        try:
            return await abandonable(partial(living_nodes, ray))
        except Exception:  # noqa: BLE001 — Ray's errors have no common base that can be relied on
            return None
    return None


async def _result(call: Awaitable[Any]) -> Any:
    """What a call of an actor came to. Ray's client trips over calls that were cancelled, so none is: who is cancelled
    here only stops waiting."""

    async def wait() -> Any:
        return await call

    waited = asyncio.ensure_future(wait())
    waited.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to ask
    return await asyncio.shield(waited)


class RayLink:
    """Frames to the process behind an actor. What is sent waits while much is under way; what goes out together goes
    in one call."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._frames = Frames()
        self._out = bytearray()
        self._more, self._room = anyio.Event(), anyio.Event()
        self.lost: str | None = None

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None:
        while self.lost is None and len(self._out) > _PENDING:
            await self._room.wait()
        if self.lost is not None:
            raise ConnectionError(self.lost)
        self._out += encode_frame(kind, number, data)
        self._more.set()

    async def receive(self) -> Frame | None:
        while (frame := self._frames.next()) is None:
            if self.lost is not None:
                return None
            try:
                data = await _result(self._actor.receive.remote())
            except Exception as error:  # noqa: BLE001 — Ray's errors have no common base that can be relied on
                self.end(_words(error))
                return None
            if not isinstance(data, bytes) or not data:
                self.end(await self._why())
                return None
            self._frames.feed(data)
        return frame

    async def _why(self) -> str:
        try:
            return f"its process ended: {await _result(self._actor.last_words.remote())}"
        except Exception as error:  # noqa: BLE001 — as above
            return f"its process ended, and so did what held it ({_words(error)})"

    async def pass_on(self) -> None:
        """Sends what is to be sent, until the link is lost."""
        while self.lost is None:
            await self._more.wait()
            self._more = anyio.Event()
            while self._out and self.lost is None:
                data = bytes(self._out)
                self._out.clear()
                self._room.set()
                self._room = anyio.Event()
                try:
                    await _result(self._actor.send.remote(data))
                except Exception as error:  # noqa: BLE001 — as above
                    self.end(_words(error))

    def end(self, why: str) -> None:
        self.lost = self.lost or why
        self._more.set()
        self._room.set()


def _words(error: Exception) -> str:
    """What Ray says of an error, which can be a page."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:_SAID]}"


class Pipe:
    """The actor: a process of ours, and bytes to and from it. The process ends when this one does, but cleans up
    first: it is nobody's child, because Ray kills the children of an actor that ends."""

    def __init__(self, module: str) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        env = {**TOOL_ENV, **{name: os.environ[name] for name in PASSED if name in os.environ}}
        env["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if Path(entry).is_absolute())
        argv = ["/bin/sh", "-c", '"$@" &', "sh", sys.executable, "-P", "-m", module, str(theirs.fileno())]
        self._said = os.memfd_create("securebench", os.MFD_CLOEXEC)  # its standard error
        with theirs:
            self._started = start(argv, env=env, stderr=self._said, pass_fds=(theirs.fileno(),))

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def receive(self) -> bytes:
        """The next bytes, empty when it has ended."""
        try:
            return await asyncio.get_running_loop().sock_recv(self._socket, _CHUNK)
        except OSError:
            return b""

    async def finish(self) -> None:
        """Let it clean up; returns when it has ended."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        with anyio.move_on_after(_FAREWELL):
            while await self.receive():
                pass

    async def last_words(self) -> str:
        """The last line that it wrote to standard error."""
        size = os.fstat(self._said).st_size
        said = os.pread(self._said, _LAST_WORDS, max(0, size - _LAST_WORDS))
        return said.decode("utf-8", "replace").strip().rpartition("\n")[2]


def open_pipe(ray: Any, node: RayNode, module: str) -> Any:
    """An actor on that node and no other."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    actor = ray.remote(Pipe).options(
        num_cpus=node.cpus,
        max_concurrency=64,
        max_restarts=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node.id, soft=False),
    )
    return actor.remote(module)


async def started(actor: Any, there: anyio.Event) -> None:
    """Returns when Ray has started it, or never will."""
    with suppress(Exception):  # who listens to it hears of that, too
        await _result(actor.last_words.remote())
        there.set()


async def end_actor(ray: Any, actor: Any, *, started: bool) -> None:
    """Its process sees its socket close, cleans up and ends. One that has not started is not waited for."""
    if started:
        with suppress(Exception), anyio.move_on_after(_FAREWELL + 5):  # gone already, or the cluster is
            await _result(actor.finish.remote())
    with suppress(Exception):
        await anyio.to_thread.run_sync(ray.kill, actor)


def ask_for_cpus(ray: Any, cpus: Mapping[str, int]) -> str | None:
    """Let a cluster that can grow grow to so many processors of nodes of each role; none lets it shrink. Why it did not
    hear that, if it did not. Where Ray's autoscaler is one that looks at no labels, it adds nodes of whatever role."""
    selectors = [{ROLE_LABEL: f"!in({_OTHER[role]})"} for role, number in cpus.items() for _ in range(number)]
    try:
        if ray.util.client.ray.is_connected():  # who is a client can only have it asked
            asked = ray.remote(num_cpus=0)(_request).remote(selectors)
            try:
                ray.get(asked, timeout=ANSWER_SECONDS)
            except BaseException:
                ray.cancel(asked)  # it must not be heard after what is asked next
                raise
        else:
            _request(selectors)
    except Exception as error:  # noqa: BLE001 — Ray's errors have no common base that can be relied on
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


def _request(selectors: list[dict[str, str]]) -> None:
    from ray.autoscaler.sdk import request_resources

    request_resources(bundles=[{"CPU": 1}] * len(selectors), bundle_label_selectors=selectors)
