#!/usr/bin/env python3
"""nbspam mail filter on a real Dovecot with TLS on loopback, beside fetching and classifying.

Usage:  python benchmarks/mail.py --ham DIR... --spam DIR... [--messages N] [--runs N]

  --ham, --spam  folders with one mail a file, such as those of the SpamAssassin public corpus;
                 every other one is learned, of the others N are delivered
  --messages     how many are delivered to the inbox of a new account in each run

fetch     a program that fetches all messages with imapclient alone, 100 at a time, and drops them
classify  nbspam classify of a folder with the same messages
filter    nbspam mail filter: fetched, judged, and the spam moved to Junk

Times and memory are of the whole processes, in turns.  Needs Debian's dovecot-imapd and openssl;
runs on Linux.  The server is that of the tests.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "examples"))

from imap_servers import PASSWORD, Dovecot, running_dovecot

NBSPAM = [sys.executable, "-m", "nbspam"]
_FETCH = """
import ssl, sys
from imapclient import IMAPClient
certificate, port, user, password = sys.argv[1:]
context = ssl.create_default_context(cafile=certificate)
with IMAPClient("localhost", int(port), ssl_context=context) as client:
    client.sasl_login("PLAIN", lambda _: f"\\0{user}\\0{password}".encode())
    client.select_folder("INBOX", readonly=True)
    uids = client.search("ALL")
    for start in range(0, len(uids), 100):
        client.fetch(uids[start : start + 100], ["FLAGS", "BODY.PEEK[]"])
"""


class Used(NamedTuple):
    """What a process took."""

    seconds: float
    megabytes: float  # the most memory, of the process or of one that it started


def used(command: list[str], environment: dict[str, str]) -> Used:
    """Run a command and return what it took."""
    started = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return Used(seconds, usage.ru_maxrss / 1024)


def mails(folders: list[Path]) -> list[Path]:
    """Return the files of folders, in order."""
    return [path for folder in folders for path in sorted(folder.iterdir()) if path.is_file()]


def deliver(server: Dovecot, messages: list[Path]) -> str:
    """Return a new user who has these messages, unread."""
    user = server.add_user()
    maildir = server.top / user / "Maildir"
    for part in ("cur", "new", "tmp"):
        (maildir / part).mkdir(parents=True)
    for i, message in enumerate(messages):
        content = message.read_bytes().replace(b"\r\n", b"\n")
        (maildir / "new" / f"{1_700_000_000 + i}.{i}.host").write_bytes(content)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "nobody:nogroup", maildir.parent], check=True)
    return user


def main() -> None:
    """Measure, and print the medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ham", nargs="+", type=Path, required=True)
    parser.add_argument("--spam", nargs="+", type=Path, required=True)
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    ham, spam = mails(arguments.ham), mails(arguments.spam)
    half = arguments.messages // 2
    delivered = [*ham[1::2][:half], *spam[1::2][:half]]
    with tempfile.TemporaryDirectory() as folder, running_dovecot() as server:
        work = Path(folder)
        for label, paths in (("ham", ham[::2]), ("spam", spam[::2])):
            (work / label).mkdir()
            for i, path in enumerate(paths):
                (work / label / f"{i:05}").symlink_to(path.resolve())
        (work / "mails").mkdir()
        for i, path in enumerate(delivered):
            (work / "mails" / f"{i:05}").write_bytes(path.read_bytes())
        environment = {**os.environ, "NBSPAM_CONFIG": "", "NBSPAM_MODEL": str(work / "model.json")}
        learning = ["--ham", str(work / "ham"), "--spam", str(work / "spam")]
        used([*NBSPAM, "train", "-q", "--outside", *learning], environment)
        print(f"{len(delivered)} messages, {sum(p.stat().st_size for p in delivered):,} bytes")
        measure(server, delivered, work, environment, arguments.runs)


def measure(
    server: Dovecot, delivered: list[Path], work: Path, environment: dict[str, str], runs: int
) -> None:
    """Run the three in turns, and print what they took."""
    (work / "password").write_text(f"{PASSWORD}\n")
    (work / "password").chmod(0o600)
    config = work / "config.toml"
    found: dict[str, list[Used]] = {"fetch": [], "classify": [], "filter": []}
    for run in range(runs):
        user = deliver(server, delivered)
        fetch = [sys.executable, "-c", _FETCH, str(server.certificate), str(server.port)]
        used([*fetch, user, PASSWORD], environment)  # the server's own index is made by the first
        found["fetch"].append(used([*fetch, user, PASSWORD], environment))
        found["classify"].append(used([*NBSPAM, "classify", str(work / "mails")], environment))
        config.write_text(
            f'[mail.home]\nhost = "localhost"\nport = {server.port}\nuser = "{user}"\n'
            f'ca-file = "{server.certificate}"\npassword-file = "{work}/password"\n'
        )
        own = {"NBSPAM_CONFIG": str(config), "XDG_STATE_HOME": str(work / f"state{run}")}
        found["filter"].append(used([*NBSPAM, "mail", "filter", "-q"], environment | own))
    for name, each in found.items():
        seconds = statistics.median(one.seconds for one in each)
        megabytes = statistics.median(one.megabytes for one in each)
        print(f"{name:9} {seconds:6.2f} s  {megabytes:4.0f} MB")
    ratios = [
        f.seconds / (a.seconds + c.seconds)
        for a, c, f in zip(found["fetch"], found["classify"], found["filter"], strict=True)
    ]
    print(
        f"filter / (fetch + classify): {statistics.median(ratios):.2f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f})"
    )


if __name__ == "__main__":
    main()
