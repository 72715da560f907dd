"""Web servers of this process."""

import contextlib
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def web_server(handler):
    """Yield the URL of a server whose requests go to a handler of `http.server`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_address[1]}"
        served.shutdown()
        thread.join()


class FileServer(BaseHTTPRequestHandler):
    """Serves files of a folder, or ranges of them, as an object store does."""

    folder = None

    def do_GET(self):
        path = self.folder / self.path.partition("?")[0].lstrip("/")
        if not path.is_file():
            if self.path.endswith("/") or "list-type" in self.path:
                self.answer(200, b"<ListBucketResult></ListBucketResult>")
            else:
                self.answer(404, b"")
            return
        data = path.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted:
            start, end = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
            span = f"bytes {start}-{end}/{len(data)}"
            self.answer(206, data[start : end + 1], {"Content-Range": span})
        else:
            self.answer(200, data)

    do_HEAD = do_GET  # noqa: N815 (the name that is called)

    def answer(self, code, data, headers=None):
        self.send_response(code)
        more = {"Content-Length": str(len(data)), "Accept-Ranges": "bytes", "ETag": '"1"'}
        date = {"Last-Modified": "Mon, 06 May 2024 10:00:00 GMT"}
        for name, value in {**more, **date, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_):
        pass
