#!/usr/bin/env python3
"""nbspam serve under load, beside SpamAssassin's spamd and bogofilter, through the real spamc.

Usage:  python benchmarks/serve.py --ham DIR... --spam DIR... [--messages N] [--clients N]
                                   [--soak SECONDS] [--replace N] [--spamd USER] [--only PART,...]

  --ham, --spam  folders with one mail a file, such as those of the SpamAssassin public corpus;
                 every other one is learned, all of them are sent
  --spamd        run `spamd -L` too, as this user (it refuses root); its Bayes learns nothing
  --only         alone, load, replace, soak, huge, hostile, slow, rude (all by default)
  --beside       a folder with another version of nbspam, which `alone` asks in turns with this one

alone    one client at a time, `spamc -c` in turns with bogofilter run once per message; and the
         server's own CPU time for a message
load     N clients at once; each message is filtered and must come out whole, with our header
replace  the same, with the model replaced all the while
soak     clients that never rest; the server's memory at the beginning and at the end
huge     the load, with a client that sends 10 MB of HTML again and again
hostile  one CHECK after the other, with two clients that send 30 MB again and again, of each
         of the shapes that take the longest
slow     one CHECK after the other, without and beside 1,000 clients that send a byte now and then
         (as many connections are allowed)

rude     200 clients at once, of which half are rude: they are silent, send a byte now and then,
         announce what they do not send, hang up, or read no reply; for as long as soak

Times are of the whole client process.  Needs Debian's spamc and bogofilter; runs on Linux.
"""

import argparse
import itertools
import multiprocessing
import os
import resource
import shutil
import signal
import socket as sockets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

NBSPAM = [sys.executable, "-m", "nbspam"]
SPAMC = shutil.which("spamc") or "/usr/bin/spamc"
HEADER = b"X-Nbspam: "


class Load(NamedTuple):
    """What a load was like."""

    seconds: list[float]  # of each client process
    failed: list[str]
    wall: float

    def __str__(self) -> str:
        ranked = sorted(self.seconds)
        p50, p99 = (1000 * ranked[int(q * (len(ranked) - 1))] for q in (0.5, 0.99))
        rate = len(ranked) / self.wall
        return (
            f"{len(ranked):6} messages  p50 {p50:7.1f} ms  p99 {p99:7.1f} ms"
            f"  {rate:7.1f} messages/s  {len(self.failed)} failed"
        )

    def ratios(self, other: "Load") -> str:
        """Return this load's figures over another's."""
        mine, theirs = sorted(self.seconds), sorted(other.seconds)
        found = [
            mine[int(q * (len(mine) - 1))] / theirs[int(q * (len(theirs) - 1))] for q in (0.5, 0.99)
        ]
        rate = len(mine) / self.wall / (len(theirs) / other.wall)
        return f"p50 {found[0]:.3f}  p99 {found[1]:.3f}  messages/s {rate:.2f}"


def run(command: list[str], source: Path | None, out: Path | None) -> tuple[float, int]:
    """Run a command and return its seconds and exit code; the cheapest way there is in Python."""
    started = time.perf_counter()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(source or os.devnull), os.O_RDONLY, 0),
        (
            os.POSIX_SPAWN_OPEN,
            1,
            str(out or os.devnull),
            os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
            0o600,
        ),
    ]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status = os.waitpid(child, 0)
    return time.perf_counter() - started, os.waitstatus_to_exitcode(status)


def whole(message: Path, out: Path, header: bytes) -> bool:
    """Return whether a filtered message is the message and a header of the filter's."""
    given, got = message.read_bytes(), out.read_bytes()
    if header != HEADER:
        return len(got) > len(given) and header in got
    lines = got.split(b"\n")
    ours = [i for i, line in enumerate(lines) if line.startswith(HEADER)]
    kept = b"\n".join(line for i, line in enumerate(lines) if i not in ours)
    return len(ours) == 1 and kept == given


def load(
    command: list[str],
    messages: Iterator[Path],
    clients: int,
    work: Path,
    header: bytes = HEADER,
) -> Load:
    """Send messages through clients, as many at once as there are."""
    seconds: list[float] = []
    failed: list[str] = []
    lock = threading.Lock()

    def client(number: int) -> None:
        out = work / f"out.{number}"
        while True:
            with lock:
                message = next(messages, None)
            if message is None:
                return
            taken, code = run(command, message, out)
            if code or not whole(message, out, header):
                failed.append(f"{message}: exit {code}")
            seconds.append(taken)

    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(client, number) for number in range(clients)]:
            done.result()
    return Load(seconds, failed, time.perf_counter() - started)


@contextmanager
def server(
    command: list[str], answers: list[str], environment: dict[str, str] | None = None
) -> Iterator[int]:
    """Run a server; yields its process number once it answers."""
    # spamd writes two lines a message
    process = subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        for _ in range(300):
            if run([*answers, "-K"], None, None)[1] == 0:
                break
            time.sleep(0.2)
        else:
            raise SystemExit(f"{command[:4]} does not answer")
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def processes(pid: int) -> list[int]:
    """Return the numbers of a process and of those that it started."""
    tasks = list(Path(f"/proc/{pid}/task").iterdir())
    return [pid, *(int(one) for task in tasks for one in (task / "children").read_text().split())]


def resident(pid: int) -> float:
    """Return the memory of a server in MiB, what its processes share counted once (PSS)."""
    rollups = [Path(f"/proc/{one}/smaps_rollup").read_text() for one in processes(pid)]
    return sum(int(text.split("Pss:")[1].split()[0]) for text in rollups) / 1024


def cpu(pid: int) -> float:
    """Return the seconds that a server has computed; of all its processes and threads."""
    tasks = [task for one in processes(pid) for task in Path(f"/proc/{one}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def alone(
    messages: list[Path], servers: dict[str, tuple[list[str], int]], bogofilter: Path
) -> None:
    """Print what one message at a time costs, beside bogofilter: mails not met before, and again.

    servers: name -> how spamc is called, and the server's process number.
    Of a mail that it has met nbspam remembers the words' weights, while there is room.
    """
    theirs = [shutil.which("bogofilter") or "", "-d", str(bogofilter)]
    commands = [*([*spamc, "-c"] for spamc, _ in servers.values()), theirs]
    for what in ("first met", "met again"):
        turns: list[list[float]] = []
        before: list[float] = []
        for number, message in enumerate(messages):
            if number == 20:  # the first ones warm the caches
                before = [cpu(pid) for _, pid in servers.values()]
            turns.append([run(command, message, None)[0] for command in commands])
        del turns[:20]
        for i, (name, (_, pid)) in enumerate(servers.items()):
            ours, others = (1000 * statistics.median(turn[k] for turn in turns) for k in (i, -1))
            ratio = statistics.median(turn[i] / turn[-1] for turn in turns)
            own = 1000 * (cpu(pid) - before[i]) / len(turns)
            print(
                f"alone, {what}, {name}: spamc {ours:.2f} ms, bogofilter {others:.2f} ms,"
                f" ratio {ratio:.2f}; the server computed {own:.2f} ms",
                flush=True,
            )


def is_polite_served(path: Path, message: bytes) -> bool:
    """Have a message filtered; return whether it came back whole."""
    asked = b"PROCESS SPAMC/1.5\r\nContent-length: %d\r\n\r\n%b" % (len(message), message)
    reply = ask(path, asked)
    lines = reply.partition(b"\r\n\r\n")[2].split(b"\n")
    ours = [line for line in lines if line.startswith(HEADER)]
    return len(ours) == 1 and b"\n".join(line for line in lines if line not in ours) == message


def be_rude(path: Path, number: int, stop: threading.Event) -> None:
    """Connect again and again, and keep the server waiting."""
    head, body = b"PROCESS SPAMC/1.5\r\nContent-length: 200000\r\n\r\n", b"x" * 200_000
    starts = b"", head[:20], head, head + body[:70_000], head + body, b"\0" * 5_000
    for turn in itertools.count(number):
        with suppress(OSError), sockets.socket(sockets.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(starts[turn % len(starts)])
            for _ in range(turn % 7):
                if stop.wait(1):
                    return
                client.sendall(b"x")
        if stop.wait(0.1):
            return


def rude(path: Path, pid: int, mails: list[Path], seconds: float, clients: int = 200) -> None:
    """Let half of many clients be rude; print what the others got, and what the server took."""
    stop, served, lost = threading.Event(), list[float](), list[Path]()

    def be_polite(number: int) -> None:
        for mail in itertools.islice(itertools.cycle(mails), number, None):
            started = time.perf_counter()
            try:
                is_whole = is_polite_served(path, mail.read_bytes())
            except OSError:
                is_whole = False
            served.append(time.perf_counter() - started) if is_whole else lost.append(mail)
            if stop.wait(0.5):
                return

    def open_files() -> int:
        return sum(len(list(Path(f"/proc/{one}/fd").iterdir())) for one in processes(pid))

    small = [mail for mail in mails if mail.stat().st_size < 100_000]
    mails = [mail for mail in small if b"\n" + HEADER not in mail.read_bytes()]
    before, memory = open_files(), list[float]()
    threads = [
        threading.Thread(target=be_rude, args=(path, i, stop))
        if i % 2
        else threading.Thread(target=be_polite, args=(i,))
        for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(min(10.0, seconds / 4))
        memory.append(resident(pid))
    stop.set()
    for thread in threads:
        thread.join()
    time.sleep(3)
    ranked = sorted(served)
    p50, p99 = (1000 * ranked[int(q * (len(ranked) - 1))] for q in (0.5, 0.99))
    print(
        f"rude: {len(served)} messages served, {len(lost)} lost, p50 {p50:.0f} ms, p99 {p99:.0f}"
        f" ms; memory {memory[0]:.0f} to {memory[-1]:.0f} MiB, at most {max(memory):.0f};"
        f" open files {before} to {open_files()}",
        flush=True,
    )


def replacing(model: Path, times: int, stop: threading.Event, done: list[int]) -> None:
    """Put copies of a model in its place by renaming, as nbspam does."""
    for _ in range(times):
        beside = model.with_suffix(".beside")
        shutil.copyfile(model, beside)
        beside.replace(model)
        done.append(1)
        if stop.wait(0.1):
            return


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ham", nargs="+", type=Path, required=True)
    parser.add_argument("--spam", nargs="+", type=Path, required=True)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--soak", type=float, default=600)
    parser.add_argument("--replace", type=int, default=100)
    parser.add_argument("--spamd", metavar="USER")
    parser.add_argument("--spamd-messages", type=int)
    parser.add_argument("--only", default="alone,load,replace,soak,huge,hostile,slow,rude")
    parser.add_argument("--beside", type=Path)
    asked = parser.parse_args()
    parts = asked.only.split(",")
    with tempfile.TemporaryDirectory(prefix="nbspam-serve-") as folder:
        measure(asked, parts, Path(folder))


def measure(asked: argparse.Namespace, parts: list[str], work: Path) -> None:
    """Train, serve, and run the parts."""
    ham = sorted(f for d in asked.ham for f in d.iterdir())
    spam = sorted(f for d in asked.spam for f in d.iterdir())
    for name, files in (("ham", ham[::2]), ("spam", spam[::2])):
        (work / name).mkdir()
        for number, file in enumerate(files):
            (work / name / str(number)).symlink_to(file.resolve())
    model, socket = work / "model.json", work / "socket"
    subprocess.run(
        [
            *NBSPAM,
            "train",
            "--outside",
            "-m",
            str(model),
            "--ham",
            str(work / "ham"),
            "--spam",
            str(work / "spam"),
        ],
        check=True,
    )
    bogofilter = work / "bogofilter"
    bogofilter.mkdir()
    for flag, files in (("-n", ham[::2]), ("-s", spam[::2])):
        names = "".join(f"{file}\n" for file in files)
        subprocess.run(
            ["bogofilter", "-d", str(bogofilter), flag, "-b"], input=names.encode(), check=True
        )
    # Every seventh, then every seventh from the second: neighbours are of one list, or one sender.
    # spamc hands on what is larger than its limit, unread by any server.
    both = [file for file in (ham + spam) if file.stat().st_size < 500_000]
    mails = [file for start in range(7) for file in both[start::7]]
    spamc = [SPAMC, "-U", str(socket)]
    serve = [*NBSPAM, "serve", "-q", "-m", str(model), "--socket", str(socket)]
    ours = None
    if "slow" in parts:
        slow(mails[0], [*serve, "--connections", "1100"], spamc, socket)
    with server(serve, spamc) as pid, ExitStack() as opened:
        if "alone" in parts:
            servers = {"this version": (spamc, pid)}
            if asked.beside:
                other = work / "beside"
                environment = os.environ | {"PYTHONPATH": str(asked.beside)}
                asking = [SPAMC, "-U", str(other)]
                started = server([*serve[:-1], str(other)], asking, environment)
                servers["the other version"] = asking, opened.enter_context(started)
            alone(mails[:200], servers, bogofilter)
            opened.close()
        if "rude" in parts:
            rude(socket, pid, mails, asked.soak)
        if "load" in parts:
            ours = load(spamc, endless(mails, asked.messages), asked.clients, work)
            report("load, nbspam serve", ours, pid)
        if "replace" in parts:
            stop, done = threading.Event(), list[int]()
            thread = threading.Thread(target=replacing, args=(model, asked.replace, stop, done))
            thread.start()
            count = max(2000, asked.messages // 2)
            found = load(spamc, endless(mails, count), asked.clients, work)
            stop.set()
            thread.join()
            report(f"load, the model replaced {len(done)} times", found, pid)
        if "huge" in parts:
            huge(mails, spamc, asked.clients, work, pid)
        if "hostile" in parts:
            hostile(mails[0], socket)
        if "soak" in parts:
            soak(mails, spamc, asked, work, pid)
    if asked.spamd and "load" in parts and ours:
        beside_spamd(asked, mails, work, ours)


def endless(mails: list[Path], count: int) -> Iterator[Path]:
    """Yield so many mails, from the start again when they are all done."""
    return itertools.islice(itertools.cycle(mails), count)


def report(what: str, found: Load, pid: int | None = None) -> None:
    """Print a load."""
    memory = f"  {resident(pid):.0f} MiB" if pid else ""
    print(f"{what}: {found}{memory}", flush=True)
    for line in found.failed[:5]:
        print(f"  {line}", flush=True)


def huge(mails: list[Path], spamc: list[str], clients: int, work: Path, pid: int) -> None:
    """Print the load beside a client with huge messages."""
    big = work / "huge.eml"
    words = [word for mail in mails[:300] for word in mail.read_bytes().split() if word.isalnum()]
    lines = (
        b'<p><a href="http://%s.example/%s">%s</a> <b>%s</b></p>\n' % (a, b, a, b)
        for a, b in zip(itertools.cycle(words), itertools.cycle(words[7:]), strict=False)
    )
    with big.open("wb") as file:
        file.write(b"From: a@example.com\nSubject: huge\nContent-Type: text/html\n\n")
        while file.tell() < 10 << 20:
            file.write(next(lines))
    stop, taken = threading.Event(), list[float]()

    def client() -> None:
        while not stop.is_set():
            taken.append(run([*spamc, "-s", "50000000"], big, work / "huge.out")[0])

    thread = threading.Thread(target=client)
    thread.start()
    found = load(spamc, endless(mails, 2000), clients, work)
    stop.set()
    thread.join()
    report("load, beside 10 MB of HTML again and again", found, pid)
    print(f"  the 10 MB took {statistics.median(taken):.2f} s, {len(taken)} times", flush=True)


HOSTILE = {
    "header fields, no empty line": b"X-A: b\n" * (30_000_000 // 7),
    "lines, no empty line": b"some words\n" * (30_000_000 // 11),
    "one line": b"Subject: a\n\n" + b"a" * 30_000_000,
    "one line, no header": b"a" * 30_000_000,
    "lines that end with CR": b"a: b\r" * (30_000_000 // 5),
    "HTML tags": b"Content-Type: text/html\n\n" + b"<b>" * 10_000_000,
}


def hostile(small: Path, socket: Path) -> None:
    """Print how long CHECKs of a small mail take beside two clients with 30 MB."""
    mail = small.read_bytes()
    asked = b"CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n%s" % (len(mail), mail)
    for (shape, body), command in itertools.product(HOSTILE.items(), ("CHECK", "PROCESS")):
        head = f"{command} SPAMC/1.5\r\nContent-length: {len(body)}\r\n\r\n".encode()
        clients = [
            multiprocessing.Process(target=again_and_again, args=(socket, head + body))
            for _ in range(2)
        ]
        for client in clients:
            client.start()
        time.sleep(1)
        seconds, ends = [], time.monotonic() + 10
        while time.monotonic() < ends:
            started = time.perf_counter()
            ask(socket, asked)
            seconds.append(time.perf_counter() - started)
            time.sleep(0.005)
        for client in clients:
            client.terminate()
            client.join()
        print(f"beside {command} of {shape}: {Load(seconds, [], sum(seconds))}", flush=True)


def slow(small: Path, serve: list[str], spamc: list[str], socket: Path) -> None:
    """Print how long CHECKs take without slow clients and beside 1,000 of them."""
    asked = b"CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n" % small.stat().st_size
    asked += small.read_bytes()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the server has it of us
    with server(serve, spamc) as pid, ExitStack() as opened:
        for n in (0, 1000):
            clients = []
            for _ in range(n):
                client = opened.enter_context(sockets.socket(sockets.AF_UNIX))
                client.connect(str(socket))
                clients.append(client)
            seconds = []
            for number in range(1000):
                for client in clients[number % 20 :: 20] if number < 400 else []:
                    client.send(asked[number // 20 : number // 20 + 1])
                started = time.perf_counter()
                ask(socket, asked)
                seconds.append(time.perf_counter() - started)
            found = Load(seconds, [], sum(seconds))
            print(f"beside {n:,} slow clients: {found}  {resident(pid):.0f} MiB", flush=True)


def ask(socket: Path, request: bytes) -> bytes:
    """Send a request and read the reply to its end."""
    with sockets.socket(sockets.AF_UNIX) as client:
        client.connect(str(socket))
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(1 << 18), b""))


def again_and_again(socket: Path, request: bytes) -> None:
    """Be a hostile client until the end."""
    while True:
        with suppress(OSError):
            ask(socket, request)


def soak(
    mails: list[Path], spamc: list[str], asked: argparse.Namespace, work: Path, pid: int
) -> None:
    """Print the memory over a long time of load."""
    load(
        spamc, endless(mails, len(mails)), asked.clients, work
    )  # each mail once: the caches are full
    ends = time.monotonic() + asked.soak
    memory = [resident(pid)]
    total = failed = 0
    while time.monotonic() < ends:
        found = load(spamc, endless(mails, len(mails) // 2), asked.clients, work)
        total, failed = total + len(found.seconds), failed + len(found.failed)
        memory.append(resident(pid))
    shown = ", ".join(f"{m:.1f}" for m in memory[:: max(1, len(memory) // 12)])
    print(f"soak, {asked.soak:.0f} s: {total} messages, {failed} failed, MiB {shown}", flush=True)


def beside_spamd(asked: argparse.Namespace, mails: list[Path], work: Path, ours: Load) -> None:
    """Print the same load on spamd, and the ratios."""
    home = work / "spamd"
    home.mkdir()
    shutil.chown(home, asked.spamd)
    work.chmod(0o755)
    port = "17833"
    command = [
        shutil.which("spamd") or "/usr/sbin/spamd",
        "-L",
        "-x",
        "-i",
        "127.0.0.1",
        "-p",
        port,
    ]
    command += ["-m", "5", "-u", asked.spamd, f"--helper-home-dir={home}", "-s", "null"]
    spamc = [SPAMC, "-d", "127.0.0.1", "-p", port]
    with server(command, spamc):
        count = asked.spamd_messages or asked.messages
        theirs = load(spamc, endless(mails, count), asked.clients, work, b"X-Spam-Checker-Version:")
        report("load, spamd -L", theirs)
    print(f"nbspam serve / spamd: {ours.ratios(theirs)}", flush=True)


if __name__ == "__main__":
    main()
