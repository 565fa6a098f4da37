import hashlib
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from transformer.data.corpora.download import DownloadError, download, sha256

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802  (the name is the protocol's)
        self.server.asked.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        body = CONTENT[:-1] + b"!" if self.path == "/altered" else CONTENT
        self.send_response(200)
        if not self.path.startswith("/no-length"):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = {"/truncated": 100_000, "/silent": 100_000, "/no-length-cut": 100_000}
        self.wfile.write(body[: cut.get(self.path, len(body))])
        if self.path == "/silent":
            self.wfile.flush()
            self.server.stop.wait(60)  # longer than the tests wait
            self.wfile.write(body[100_000:])

    def handle(self):
        with suppress(ConnectionError):  # the client that gave up
            super().handle()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.stop = [], threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.stop.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("page", ["/good", "/no-length"])
def test_good_download(server, tmp_path, page):
    path = tmp_path / "new" / "folder" / "file.gz"
    download([server.url + page], path, SHA256)
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["file.gz"]
    assert sha256(path) == SHA256


@pytest.mark.parametrize("page, reason", [
    ("/truncated", r"truncated: 100000 of 256000 bytes|IncompleteRead"), ("/missing", "HTTP 404"),
    ("/no-length-cut", "wrong SHA-256"), ("/altered", "wrong SHA-256"), ("/silent", "timed out"),
])  # fmt: skip
def test_a_bad_source_changes_nothing_and_the_next_is_used(server, tmp_path, page, reason):
    path = tmp_path / "file.gz"
    path.write_text("older")
    with pytest.raises(DownloadError, match=reason) as info:
        download([server.url + page], path, SHA256, timeout=2.0)
    assert "127.0.0.1" in str(info.value) and "\n" not in str(info.value)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["older"]
    # The next source is used, and no other.
    server.asked.clear()
    download([server.url + p for p in (page, "/good", "/no-length")], path, SHA256, timeout=2.0)
    assert path.read_bytes() == CONTENT and server.asked == [page, "/good"]


def test_full_disk_is_reported_and_other_sources_are_not_tried(server, tmp_path, limit_file_size):
    urls = [server.url + "/good", server.url + "/no-length"]
    full = pytest.raises(OSError, match="File too large; make room")
    with limit_file_size(1000), full as info:
        download(urls, tmp_path / "file", SHA256)
    assert not isinstance(info.value, DownloadError)
    assert server.asked == ["/good"]
    assert not list(tmp_path.iterdir())
