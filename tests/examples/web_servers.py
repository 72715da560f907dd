"""Web servers of this process."""

import contextlib
import threading
from http.server import ThreadingHTTPServer


@contextlib.contextmanager
def web_server(handler):
    """Yield the URL of a server whose requests go to a handler of `http.server`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_address[1]}"
        served.shutdown()
        thread.join()
