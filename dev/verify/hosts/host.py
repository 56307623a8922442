"""A host in a container: its first process is systemd, which starts Cassandra, Kafka and the programs' units."""

from __future__ import annotations

import re
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import wait_until
from dev.verify.containers.bases import CASSANDRA, KAFKA_IMAGE, ensure_cassandra, ensure_kafka, ensure_python

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

    from dev.verify.containers.engine import Engine

CASSANDRA_YAML = "/etc/cassandra/cassandra.yaml"
DOCKERFILE = "dev/verify/hosts/Dockerfile"
# What systemd and the confinement of units need; `--privileged` would take more than some engines may give.
CAPABILITIES = (
    *("AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID"),
    *("IPC_LOCK", "KILL", "LEASE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP"),
    *("SETUID", "SYS_ADMIN", "SYS_CHROOT", "SYS_NICE", "SYS_PTRACE", "SYS_TTY_CONFIG"),
)
OPTIONS = (
    *(f"--cap-add={name}" for name in CAPABILITIES),
    *("--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
    *("--tmpfs", "/run", "--tmpfs", "/run/lock", "--tmpfs", "/tmp:exec,mode=1777"),  # noqa: S108 - the container's
    "--volume=/sys/fs/cgroup:/sys/fs/cgroup",
)
BOOT_SECONDS = 60.0
START_SECONDS = 300.0
SHOWN = 3000  # characters of a journal
EXTERNAL_PORT = 29092


def build_host(engine: Engine, target: str) -> str:
    """Build a target of the Dockerfile, with all that it is made of, and return its name."""
    for ensure in (ensure_python, ensure_cassandra, ensure_kafka):
        ensure(engine)
    own = version("cassandra-cdc-materializer")
    wheel, image = f"cassandra-cdc-wheel:{own}", f"cassandra-cdc-{target}:{own}"
    root = project_root()
    build = ("build", "-q", "--network", "host")
    images = str(root / "deploy" / "images" / "Dockerfile")
    engine.docker(*build, "-f", images, "--target", "wheel", "-t", wheel, str(root))
    arguments = {"CASSANDRA": CASSANDRA, "KAFKA": KAFKA_IMAGE, "WHEEL": wheel}
    given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    engine.docker(*build, *given, "-f", str(root / DOCKERFILE), "--target", target, "-t", image, str(root))
    return image


class Host:
    """A host of this name on a network of the engine.

    names: other names of it there. address: by default any.
    environment: `NAME=value` for each command that is run on it.
    """

    def __init__(
        self,
        engine: Engine,
        image: str,
        network: str,
        name: str,
        names: tuple[str, ...] = (),
        address: str = "",
        environment: tuple[str, ...] = (),
    ) -> None:
        self._given = (*(("--ip", address) if address else ()), *(f"--env={value}" for value in environment))
        self._engine = engine
        self._image = image
        self._network = network
        self.name = name
        self._names = names
        self.id = ""

    def start(self) -> None:
        """Start it, and wait until systemd takes commands."""
        aliases = [part for name in (self.name, *self._names) for part in ("--network-alias", name)]
        options = [*OPTIONS, "--hostname", self.name, "--network", self._network, *aliases, *self._given]
        self.id = self._engine.docker("run", "--detach", *options, self._image)
        wait_until(self._is_up, f"systemd on {self.name}", BOOT_SECONDS)

    @property
    def address(self) -> str:
        """Its address on the network."""
        return self._engine.docker(
            "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", self.id
        )

    def try_run(
        self, command: str, *, folder: str = "/root", seconds: float = START_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a line of bash, whose status may be any."""
        return self._engine.try_docker("exec", "--workdir", folder, self.id, "bash", "-c", command, seconds=seconds)

    def run(
        self, command: str, *, folder: str = "/root", seconds: float = START_SECONDS, statuses: Sequence[int] = (0,)
    ) -> str:
        """Return what a line of bash prints. CdcError SERVER_FAILED with all that it says if it ends with another
        status.
        """
        done = self.try_run(command, folder=folder, seconds=seconds)
        if done.returncode not in statuses:
            raise CdcError(
                Code.SERVER_FAILED,
                f"{self.name}: {command}\nended with {done.returncode}: {(done.stdout + done.stderr)[-SHOWN:]}",
                "See journalctl on it.",
            )
        return done.stdout

    def write(self, path: str, text: str) -> None:
        """Write a file of root's that everybody reads."""
        with tempfile.NamedTemporaryFile("w", suffix=Path(path).name) as file:
            file.write(text)
            file.flush()
            Path(file.name).chmod(0o644)
            self._engine.docker("cp", file.name, f"{self.id}:{path}")

    def copy(self, source: Path, path: str) -> None:
        """Copy a file or a folder to it."""
        self._engine.docker("cp", str(source), f"{self.id}:{path}")

    def journal(self, unit: str) -> str:
        """Return what the unit has logged."""
        return self.try_run(f"journalctl --no-pager -o cat -u {unit}").stdout

    def show(self, unit: str, name: str) -> str:
        """Return a property of the unit, as `systemctl show` has it."""
        return self.run(f"systemctl show --value -p {name} {unit}").strip()

    def start_unit(self, unit: str, is_ready: Callable[[], bool], seconds: float = START_SECONDS) -> float:
        """Start a unit and return the seconds until it was ready. CdcError with its journal."""
        began = time.monotonic()
        self.run(f"systemctl start {unit}")
        try:
            wait_until(is_ready, f"{unit} on {self.name}", seconds)
        except CdcError:
            raise CdcError(
                Code.SERVER_FAILED, f"{unit} did not become ready:\n{self.journal(unit)[-SHOWN:]}", "See its journal."
            ) from None
        return time.monotonic() - began

    def configure_cassandra(self, yaml: str) -> None:
        """Lay settings of one line each over cassandra.yaml."""
        names = "|".join(re.findall(r"^(\w+):", yaml, re.MULTILINE))
        self.run(f"sed -i -E '/^({names}):/d' {CASSANDRA_YAML}")
        self.run(f"cat >> {CASSANDRA_YAML} <<'END'\n{yaml}\nEND")

    def start_cassandra(self) -> None:
        """Start it and wait until it takes clients."""
        self.start_unit("cassandra", lambda: "Starting listening for CQL clients" in self.journal("cassandra"))

    def start_kafka(self, settings: str) -> None:
        """Start a broker with these settings beside those that each has; `external` is a listener for this machine."""
        self.write("/etc/kafka.properties", KAFKA_PROPERTIES.format(name=self.name, address=self.address) + settings)
        self.start_unit("kafka", lambda: self._accepts(EXTERNAL_PORT))

    @property
    def bootstrap_servers(self) -> str:
        """Of the broker, for a client on this machine."""
        return f"{self.address}:{EXTERNAL_PORT}"

    def remove(self) -> None:
        """Remove it, running or not."""
        if self.id:
            self._engine.try_docker("rm", "--force", "--volumes", self.id)

    def _accepts(self, port: int) -> bool:
        return self.try_run(f"</dev/tcp/localhost/{port}").returncode == 0

    def _is_up(self) -> bool:
        return self.try_run("systemctl is-system-running").stdout.strip() in {"running", "degraded"}


KAFKA_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
controller.listener.names=CONTROLLER
log.dirs=/var/lib/kafka
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
listeners=CLIENTS://:9092,EXTERNAL://:29092,CONTROLLER://localhost:9093
advertised.listeners=CLIENTS://kafka1:9092,EXTERNAL://{address}:29092
inter.broker.listener.name=EXTERNAL
"""
