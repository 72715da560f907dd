"""`local:N`: whoever else can reach its ports has no use of them."""

import socket
import ssl
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from nbspam.cluster.connection import ClusterError, cluster_at

distributed = pytest.importorskip("distributed")


def answered(address, context=None):
    """Return what a port says to somebody without the key of the run; b"" if it hangs up."""
    place = urlsplit(address)
    try:
        with socket.create_connection((place.hostname, place.port), 10) as client:
            if context is not None:
                client = context.wrap_socket(client)
            with client:
                client.sendall(b"\0" * 64)
                return client.recv(100)
    except (ssl.SSLError, ConnectionError):
        return b""


def test_a_client_without_the_certificate_is_refused():
    without = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    without.check_hostname, without.verify_mode = False, ssl.CERT_NONE
    with cluster_at("local:1") as cluster:
        told = cluster._client.scheduler_info()
        workers = told["workers"].values()
        assert cluster.dashboard == ""
        addresses = [told["address"], *told["workers"], *(each["nanny"] for each in workers)]
        assert len(set(addresses)) == 3
        for address in addresses:
            assert address.startswith("tls://127.0.0.1:")
            assert answered(address) == answered(address, without) == b""
        other = distributed.Security.temporary()
        with pytest.raises(OSError, match=r"TLS|connect"):
            distributed.Client(told["address"], security=other, timeout=1)
        for services in (told["services"], *(each["services"] for each in workers)):
            http = HTTPConnection("127.0.0.1", services["dashboard"], timeout=10)
            for path in ("/", "/health", "/metrics", "/json/counts.json", "/status"):
                http.request("GET", path)
                with http.getresponse() as answer:
                    assert answer.status == 404
                    answer.read()
            http.close()
        assert list(cluster.map(plus, 1, [1, 2])) == [2, 3]  # and it goes on working


def plus(a, b):
    return a + b


def test_without_cryptography_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    said = "local:1: cryptography is not installed.* -m pip install cryptography$"
    with pytest.raises(ClusterError, match=said), cluster_at("local:1"):
        pass


def test_a_cluster_with_tls_needs_a_certificate():
    said = "tls://127.0.0.1:9: this machine has no certificate for Dask's TLS; name its files"
    with pytest.raises(ClusterError, match=said), cluster_at("tls://127.0.0.1:9"):
        pass
