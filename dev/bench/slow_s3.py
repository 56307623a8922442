"""A read-only S3 server over a folder that answers each request after a delay, as one that is not on this machine.

It checks no signature, and knows what a restore needs: HEAD, GET with a range, and ListObjectsV2. Files go out by
sendfile, so that the server takes little CPU from the client that is measured.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_TIME = "2026-01-01T00:00:00.000Z"


class Handler(BaseHTTPRequestHandler):
    """`root` holds the buckets as folders. delay: seconds before each answer."""

    protocol_version = "HTTP/1.1"
    root = Path()
    delay = 0.0

    def do_HEAD(self) -> None:
        time.sleep(self.delay)
        path = self._path()
        if path.is_file():
            self._head(200, path.stat().st_size)
        else:
            self._head(404, 0)

    def do_GET(self) -> None:
        time.sleep(self.delay)
        path, query = self._path(), parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._list(path, query.get("prefix", [""])[0])
        elif path.is_file():
            self._send_file(path)
        else:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _path(self) -> Path:
        return self.root / unquote(urlsplit(self.path).path).strip("/")

    def _head(self, status: int, size: int, content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("ETag", '"0"')
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()

    def _send(self, status: int, body: bytes) -> None:
        self._head(status, len(body))
        self.wfile.write(body)

    def _send_file(self, path: Path) -> None:
        size = path.stat().st_size
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        first, last = (int(asked[1]), min(int(asked[2]), size - 1)) if asked else (0, size - 1)
        count = last - first + 1
        self._head(206 if asked else 200, count, f"bytes {first}-{last}/{size}" if asked else "")
        with path.open("rb") as file:
            while count > 0:
                sent = os.sendfile(self.connection.fileno(), file.fileno(), first, count)
                first, count = first + sent, count - sent

    def _list(self, bucket: Path, prefix: str) -> None:
        """List the folder `prefix`, which ends with a slash, without its subfolders."""
        folder = bucket / prefix
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        files = "".join(
            f"<Contents><Key>{escape(prefix + entry.name)}</Key><LastModified>{_TIME}</LastModified>"
            f"<Size>{entry.stat().st_size}</Size></Contents>"
            for entry in entries
            if entry.is_file()
        )
        folders = "".join(
            f"<CommonPrefixes><Prefix>{escape(prefix + entry.name)}/</Prefix></CommonPrefixes>"
            for entry in entries
            if entry.is_dir()
        )
        body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{files}{folders}</ListBucketResult>"
        self._send(200, f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode())


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128


def main(arguments: list[str]) -> None:
    """Serve until the process is ended. The first line that it prints is its port."""
    parser = argparse.ArgumentParser("dev.bench.slow_s3", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    chosen = parser.parse_args(arguments)
    Handler.root, Handler.delay = chosen.root, chosen.delay_ms / 1000
    server = Server(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
