#!/usr/bin/env python3
"""nbspam serve with a model for each user, and with several workers.

Usage:  python benchmarks/serve_users.py [--users N] [--messages N] [--clients N] [--workers N]
                                         [--mails DIR...] [--rounds N] [--only users,workers]

users    clients of `spamc -u` for many users at once.  Each user's model alone knows his word:
         a message with it must be spam for him, and one with another user's word must not be.
         Meanwhile the models of half of the users are replaced, and the others are taught, which
         is counted in the end; the server's memory, of all workers
workers  messages/s of one worker and of several, in turns, asked by one process with 8 threads
         over the socket, without spamc: its own CPU time is printed too.  --mails: folders with one
         mail a file; else the mails are invented

Everything else is invented.  `users` needs Debian's spamc; both run on Linux.
"""

import argparse
import itertools
import random
import shutil
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from serve import NBSPAM, SPAMC, ask, cpu, resident, run, server

import nbspam

LETTERS = "abcdefghijklmnopqrstuvwxyz"
COMMON = "the paper of this week has news about our office and some friends there".split()
OF_EACH = 40  # messages of each class that a user has learned at first


def words_of(user: int) -> list[str]:
    """Return the word that one user alone has learned as spam, in its forms."""
    first, second = divmod(user, 26)
    return [f"zyx{LETTERS[first % 26]}{LETTERS[second]}quorn{end}" for end in LETTERS[:8]]


def mail(chance: random.Random, *words: str) -> str:
    """Return an invented mail: common words, and some of its own."""
    text = [*COMMON, *words]
    chance.shuffle(text)
    unique = "".join(chance.choices(LETTERS, k=12))
    return f"Subject: {' '.join(text[:5])}\nMessage-ID: <{unique}@x>\n\n{' '.join(text)} {unique}\n"


def make_models(folder: Path, users: int) -> None:
    """Write a model for each user."""
    for user in range(users):
        chance = random.Random(user)
        spam = [("spam", mail(chance, *words_of(user)).encode()) for _ in range(OF_EACH)]
        ham = [("ham", mail(chance).encode()) for _ in range(OF_EACH)]
        nbspam.train(spam + ham).save(folder / f"user{user}.json")


class Traffic:
    """Messages of users, from several clients."""

    def __init__(self, spamc: list[str], users: int, work: Path) -> None:
        self.spamc, self.users, self.work = spamc, users, work
        self.wrong: list[str] = []
        self.seconds: list[float] = []
        self.taught = [0] * users
        self.replaced = 0
        self.memory = 0.0

    def judge(self, numbers: "itertools.count[int]", most: int) -> None:
        """Send messages until there were enough."""
        while (number := next(numbers)) < most:
            chance = random.Random(f"judged {number}")
            user, is_own = chance.randrange(self.users), number % 2 == 0
            other = (user + chance.randrange(1, self.users)) % self.users
            path = self.work / f"{number}.eml"
            path.write_text(mail(chance, *words_of(user if is_own else other)))
            command = [*self.spamc, "-u", f"user{user}", "-x", "-c"]
            taken, code = run(command, path, None)
            self.seconds.append(taken)
            if code != is_own:  # spamc -c ends with 1 for spam
                self.wrong.append(f"user{user}, own word {is_own}: exit {code}")
            path.unlink()

    def replace(self, models: Path, stop: threading.Event) -> None:
        """Put copies of models in their places by renaming, as nbspam does."""
        beside = self.work / "beside"
        for user in itertools.cycle(range(self.users // 2)):
            shutil.copyfile(models / f"user{user}.json", beside)
            beside.rename(models / f"user{user}.json")
            self.replaced += 1
            if stop.wait(0.005):
                return

    def teach(self, stop: threading.Event) -> None:
        """Teach messages of the other users, each twice."""
        for number in itertools.count():
            user = self.users // 2 + number % (self.users - self.users // 2)
            path = self.work / "taught.eml"
            path.write_text(mail(random.Random(f"taught {number}"), *words_of(user)))
            for _ in range(2):
                _, code = run([*self.spamc, "-u", f"user{user}", "-L", "spam"], path, None)
                if code != 5 and code != 6 and code != 0:
                    self.wrong.append(f"teaching user{user}: exit {code}")
            self.taught[user] += 1
            if stop.wait(0.02):
                return

    def watch(self, pid: int, stop: threading.Event) -> None:
        """Note the most memory of all processes of the server."""
        while not stop.wait(0.2):
            self.memory = max(self.memory, resident(pid))


def many_users(asked: argparse.Namespace, work: Path) -> bool:
    """Print how the users fare; return whether all was right."""
    models, base, socket = work / "users", work / "base.json", work / "users.socket"
    models.mkdir(mode=0o700)
    make_models(models, asked.users)
    chance = random.Random("base")
    rows = [
        ("spam", mail(chance, "prize", "winner", "claim", "cash", "free", "offer").encode())
        for _ in range(OF_EACH)
    ]
    rows += [("ham", mail(chance).encode()) for _ in range(OF_EACH)]
    nbspam.train(rows).save(base)
    spamc = [SPAMC, "-U", str(socket)]
    command = [*NBSPAM, "serve", "-q", "-m", str(base), "--socket", str(socket), "--tell"]
    command += ["--user-models", str(models), "--workers", str(asked.workers)]
    with server(command, spamc) as pid:
        traffic, stop, started = Traffic(spamc, asked.users, work), threading.Event(), time.time()
        beside = [
            threading.Thread(target=traffic.replace, args=(models, stop)),
            threading.Thread(target=traffic.teach, args=(stop,)),
            threading.Thread(target=traffic.watch, args=(pid, stop)),
        ]
        for thread in beside:
            thread.start()
        numbers = itertools.count()
        with ThreadPoolExecutor(asked.clients) as pool:
            for done in [
                pool.submit(traffic.judge, numbers, asked.messages) for _ in range(asked.clients)
            ]:
                done.result()
        seconds = time.time() - started
        stop.set()
        for thread in beside:
            thread.join()
    for user in range(asked.users // 2, asked.users):
        with nbspam.open(models / f"user{user}.json") as one:
            learned = one.metadata.learned.messages[1]
        if learned != OF_EACH + traffic.taught[user]:
            traffic.wrong.append(
                f"user{user} learned {learned - OF_EACH}, not {traffic.taught[user]}"
            )
    ranked = sorted(1000 * s for s in traffic.seconds)
    print(
        f"users: {len(ranked)} messages of {asked.users} users, {asked.clients} clients,"
        f" --workers {asked.workers}: {len(traffic.wrong)} wrong; p50"
        f" {ranked[len(ranked) // 2]:.1f} ms, p99 {ranked[int(0.99 * len(ranked))]:.1f} ms;"
        f" {len(ranked) / seconds:.0f} messages/s; {traffic.replaced} models replaced,"
        f" {sum(traffic.taught)} messages taught; at most {traffic.memory:.0f} MiB",
        flush=True,
    )
    for line in traffic.wrong[:5]:
        print(f"  {line}", flush=True)
    return not traffic.wrong


def rate(socket: Path, asked: list[bytes], seconds: float, threads: int = 8) -> tuple[float, float]:
    """Return messages/s of clients that never rest, and the share of a processor that they took."""
    requests = itertools.cycle(asked)
    lock, done = threading.Lock(), [0]
    ends = time.perf_counter() + seconds

    def client() -> None:
        n = 0
        while time.perf_counter() < ends:
            with lock:
                request = next(requests)
            ask(socket, request)
            n += 1
        with lock:
            done[0] += n

    started, own = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        for one in [pool.submit(client) for _ in range(threads)]:
            one.result()
    wall = time.perf_counter() - started
    return done[0] / wall, (time.process_time() - own) / wall


def several_workers(asked: argparse.Namespace, work: Path) -> None:
    """Print the messages/s of one worker and of several."""
    chance = random.Random("workers")
    mails = [file.read_bytes() for folder in asked.mails for file in sorted(folder.iterdir())]
    mails = [one for one in mails if len(one) <= 32 << 10]
    mails = mails or [
        mail(chance, *("".join(chance.choices(LETTERS[:9], k=4)) for _ in range(400))).encode()
        for _ in range(300)
    ]
    chance.shuffle(mails)
    requests = [b"CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n%s" % (len(m), m) for m in mails]
    model = work / "workers.json"
    half = len(mails) // 2
    rows = [("spam", one) for one in mails[:half][:500]] + [("ham", m) for m in mails[half:][:500]]
    nbspam.train(rows).save(model)
    found: dict[int, list[tuple[float, float, float]]] = {1: [], asked.workers: []}
    for _ in range(asked.rounds):
        for n in found:
            socket = work / f"workers{n}.socket"
            command = [*NBSPAM, "serve", "-q", "-m", str(model), "--socket", str(socket)]
            with server([*command, "--workers", str(n)], [SPAMC, "-U", str(socket)]) as pid:
                time.sleep(2)  # until the others have the model open
                rate(socket, requests, 2)
                before = cpu(pid)
                speed, own = rate(socket, requests, 5)
                found[n].append((speed, own, (cpu(pid) - before) / 5))
    for n, runs in found.items():
        speed, own, servers = (statistics.median(run[i] for run in runs) for i in range(3))
        print(
            f"workers: --workers {n}: {speed:.0f} messages/s; of a processor the clients took"
            f" {own:.2f} and the server {servers:.2f}",
            flush=True,
        )
    ratios = [b[0] / a[0] for a, b in zip(found[1], found[asked.workers], strict=True)]
    per = [b[0] / b[2] / (a[0] / a[2]) for a, b in zip(found[1], found[asked.workers], strict=True)]
    print(
        f"workers: {asked.workers} carry {statistics.median(ratios):.2f} times the messages of one"
        f" (each round: {', '.join(f'{r:.2f}' for r in ratios)}); messages for a second of the"
        f" server's CPU time: {statistics.median(per):.2f} times as many",
        flush=True,
    )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mails", nargs="+", type=Path, default=[])
    parser.add_argument("--only", default="users,workers")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nbspam-users-") as folder:
        if "users" in asked.only and not many_users(asked, Path(folder)):
            raise SystemExit(1)
        if "workers" in asked.only:
            several_workers(asked, Path(folder))


if __name__ == "__main__":
    main()
