"""An S3 server (S3Proxy over a local folder) as a child process, for checkpoint locations on object stores."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from dev.local_stack.java.jars import S3PROXY, S3PROXY_WITH_CONDITIONS, class_path, install
from dev.local_stack.java.runtime import find_java
from dev.local_stack.process.lifecycle import FolderServer
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JAVA = 17
HEAP_MIB = 192
BUCKET = "checkpoints"
REGION = "us-east-1"
ACCESS_KEY, SECRET_KEY = "local", "local-stack"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_EC2_METADATA_DISABLED": "true",
    # S3Proxy 2.6 knows no trailing checksums.
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
}
"""The environment of the server's clients."""

LOGBACK = """<configuration>
  <appender name="log" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{ISO8601} %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="log"/></root>
</configuration>
"""


class S3Server(FolderServer):
    """It checks signatures, and has one bucket, BUCKET; port and data stay when it is stopped or killed.

    With `read_only` set before a start it refuses to write. With `has_conditions` it knows If-None-Match, and lists
    files that are not whole yet under other names.
    """

    start_seconds = 60.0

    def __init__(
        self, *, folder: Path | None = None, report: Callable[[str], None] = print, has_conditions: bool = False
    ) -> None:
        super().__init__("s3", folder, report)
        self._jars = S3PROXY_WITH_CONDITIONS if has_conditions else S3PROXY
        self.read_only = False
        (self.port,) = free_ports(1)

    @property
    def data(self) -> Path:
        """The bucket's objects as files."""
        return self.folder.path / "data" / BUCKET

    def location(self, folder: str) -> str:
        """A folder of the bucket as materializer.checkpoint_location names it."""
        return f"s3://{BUCKET}/{folder}?scheme=http&endpoint_override={LOCALHOST}:{self.port}&region={REGION}"

    def launch(self) -> ChildProcess:
        """Install what is missing, and start the process. Raises CdcError."""
        install(self._jars, self.report)
        self.data.mkdir(parents=True, exist_ok=True)
        settings, logging = self._write_settings()
        command = [
            str(find_java(JAVA, self.report).executable),
            *(f"-Xmx{HEAP_MIB}m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1"),
            f"-Dlogback.configurationFile={logging}",
            *("-cp", class_path(self._jars), "org.gaul.s3proxy.Main", "--properties", str(settings)),
        ]
        return ChildProcess("s3", command, log=self.log, cwd=self.folder.path)

    def _write_settings(self) -> tuple[Path, Path]:
        settings = {
            "s3proxy.endpoint": f"http://{LOCALHOST}:{self.port}",
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": ACCESS_KEY,
            "s3proxy.credential": SECRET_KEY,
            "s3proxy.read-only-blobstore": str(self.read_only).lower(),
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.data.parent),
            "jclouds.identity": "unused",
            "jclouds.credential": "unused",
        }
        path = self.folder.path / "s3proxy.properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        logging = self.folder.path / "logback.xml"
        logging.write_text(LOGBACK)
        return path, logging

    def is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{LOCALHOST}:{self.port}/{BUCKET}", timeout=2).close()
        except urllib.error.HTTPError:  # it wants a signature
            return True
        except OSError:
            return False
        return True
