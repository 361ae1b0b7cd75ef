"""A read-only object store on loopback that speaks as much of S3 as reading needs.

Serves the files below a folder as the objects of one bucket.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "logs"


@contextmanager
def object_store(folder: Path, closed: str | None = None) -> Iterator[str]:
    """The URI under which PyArrow finds the bucket; a folder in it may be closed to everybody."""

    class Handler(_Handler):
        root = folder
        closed_prefix = closed

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        place = f"127.0.0.1:{server.server_port}"
        yield f"s3://key:secret@{BUCKET}?scheme=http&endpoint_override={place}&region=us-east-1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    root: Path
    closed_prefix: str | None
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Nothing is said."""

    def _answer(self, has_body: bool) -> None:
        parts = urlsplit(self.path)
        _, _, key = unquote(parts.path).lstrip("/").partition("/")
        if not key:
            query = {name: text[0] for name, text in parse_qs(parts.query).items()}
            if self.closed_prefix and query.get("prefix", "").startswith(self.closed_prefix):
                self._send(403, b"<Error><Code>AccessDenied</Code></Error>", has_body)
            else:
                self._send(200, self._listing(query).encode(), has_body)
            return
        file = self.root / key
        if not file.is_file():
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", has_body)
            return
        data = file.read_bytes()
        span = self.headers.get("Range")
        if span is None:
            self._send(200, data, has_body)
            return
        first, _, last = span.removeprefix("bytes=").partition("-")
        self._send(206, data[int(first) : int(last or len(data)) + 1], has_body)

    def _listing(self, query: dict[str, str]) -> str:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys = sorted(
            str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()
        )
        contents, folders = [], set()
        for key in keys:
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                size = (self.root / key).stat().st_size
                contents.append(
                    f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
                    "<LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>"
                )
        shared = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in sorted(folders)
        )
        return (
            '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>'
            f"<KeyCount>{len(contents) + len(folders)}</KeyCount>{''.join(contents)}{shared}"
            "</ListBucketResult>"
        )

    def _send(self, status: int, data: bytes, has_body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
        self.send_header("ETag", '"e"')
        self.end_headers()
        if has_body:
            self.wfile.write(data)
