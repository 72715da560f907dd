#!/usr/bin/env python3
"""Accuracy and speed of the spam filters that Debian has, on the same mail.

Usage:  python benchmarks/programs.py --spamassassin DIR [--tested N] [--timed N] [--only NAME,...]

  --spamassassin  SpamAssassin public corpus 20030228, unpacked (`compare.py` describes it)
  --tested        the number of tested messages of each class; all of P2's by default
  --timed         the number of messages that are timed, one after the other in each program; 200
  --only          of: nbspam, nbspam serve, bogofilter, spamprobe, spamoracle, bsfilter,
                  SpamAssassin, rspamd

Each program learns P2's training half and gives its own verdict on each message of the other half,
with its default settings.  One process is started for each message, as a mail filter does; `nbspam
serve` and SpamAssassin's daemon are asked by `spamc`, rspamd by `rspamc`.  SpamAssassin and rspamd
answer by their Bayes classifiers alone: SpamAssassin has no rules but BAYES_*, of which 80 to 99
count as spam, 00 to 20 as ham; rspamd has BAYES_SPAM, BAYES_HAM or neither.

Prints ham called spam, spam not called spam, messages called unsure, and wall times: of learning,
and the median of one message.  Programs that are missing are left out.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from compare import shuffled

NBSPAM = [str(Path(sys.executable).with_name("nbspam"))]
Files = list[str]


class Program(NamedTuple):
    """A filter with a model of its own in a folder."""

    needs: str  # the program that must be installed
    learn: Callable[[Path, Files, Files], None]  # the folder, ham, spam
    ask: Callable[[Path, str], str]  # the folder, a file -> spam, ham or unsure
    daemons: Callable[[Path], list[list[str]]] = lambda folder: []  # commands of what `ask` needs
    learns_by_daemon: bool = False  # whether `learn` needs them, too


def run(
    command: list[str], path: str | None = None, good: tuple[int, ...] = (0,)
) -> tuple[int, str]:
    """Run a command on a file as its input; return its exit code and its output."""
    with Path(path or os.devnull).open("rb") as source:
        done = subprocess.run(command, stdin=source, capture_output=True, check=False)
    if done.returncode not in good:
        raise SystemExit(f"{command[:4]} failed: {done.stderr.decode(errors='replace')[-500:]}")
    return done.returncode, done.stdout.decode(errors="replace")


def folders_of(folder: Path, ham: Files, spam: Files) -> list[str]:
    """Link the files into two folders, and return the two."""
    names = []
    for name, files in (("ham", ham), ("spam", spam)):
        target = folder / name
        target.mkdir()
        for file in files:
            os.link(file, target / f"{Path(file).parent.name}.{Path(file).name}")
        names.append(str(target))
    return names


def nbspam_learn(folder: Path, ham: Files, spam: Files) -> None:
    """Train a model on two folders."""
    of_ham, of_spam = folders_of(folder, ham, spam)
    run([*NBSPAM, "train", "-m", f"{folder}/model.json", "--ham", of_ham, "--spam", of_spam])


def nbspam_ask(folder: Path, file: str) -> str:
    """Classify a message with `nbspam classify`."""
    return run([*NBSPAM, "classify", "-m", f"{folder}/model.json"], file)[1].split("\t")[0]


def nbspam_serve(folder: Path) -> list[list[str]]:
    """Return the command of `nbspam serve`."""
    return [[*NBSPAM, "serve", "-m", f"{folder}/model.json", "--socket", f"{folder}/socket"]]


def spamc_ask(folder: Path, file: str) -> str:
    """Ask a server that speaks the protocol of spamd for its verdict."""
    answer = run(["spamc", "-U", f"{folder}/socket", "--headers"], file)[1]
    ours, bayes = (answer.rpartition(field)[2] for field in ("\nX-Nbspam: ", "BAYES_"))
    if bayes != answer:  # two digits, such as 80 for P from 0.8 to 0.95
        return filed(int(bayes[:2]) / 100, 0.8, 0.2)
    return ours.split(",")[0] if ours != answer else "unsure"


def filed(value: float, spam: float, ham: float) -> str:
    """Return the verdict for a value, by the lowest of spam and the highest of ham."""
    return "spam" if value >= spam else "ham" if value <= ham else "unsure"


def bogofilter_learn(folder: Path, ham: Files, spam: Files) -> None:
    """Learn with bogofilter's bulk mode."""
    for flag, files in (("-n", ham), ("-s", spam)):
        names = folder / "names"
        names.write_text("".join(f"{file}\n" for file in files))
        run(["bogofilter", "-d", str(folder), flag, "-b"], str(names))


def bogofilter_ask(folder: Path, file: str) -> str:
    """Return bogofilter's verdict, which is its exit code."""
    code, _ = run(["bogofilter", "-d", str(folder)], file, (0, 1, 2))
    return ("spam", "ham", "unsure")[code]


def spamprobe_learn(folder: Path, ham: Files, spam: Files) -> None:
    """Learn with spamprobe."""
    for label, files in (("good", ham), ("spam", spam)):
        for start in range(0, len(files), 500):
            run(["spamprobe", "-c", "-d", str(folder), label, *files[start : start + 500]])


def spamprobe_ask(folder: Path, file: str) -> str:
    """Return spamprobe's verdict."""
    return (
        "spam" if run(["spamprobe", "-d", str(folder), "score"], file)[1][:4] == "SPAM" else "ham"
    )


def spamoracle_learn(folder: Path, ham: Files, spam: Files) -> None:
    """Learn with spamoracle."""
    run(["spamoracle", "-f", f"{folder}/words", "add", "-good", *ham, "-spam", *spam])


def spamoracle_ask(folder: Path, file: str) -> str:
    """Return spamoracle's verdict: the field X-Spam of the message that it prints."""
    answer = run(["spamoracle", "-f", f"{folder}/words", "mark"], file)[1]
    field = next(line for line in answer.splitlines() if line.startswith("X-Spam: "))
    word = field.removeprefix("X-Spam: ").split(";")[0]
    return {"yes": "spam", "no": "ham"}.get(word, "unsure")


def bsfilter_learn(folder: Path, ham: Files, spam: Files) -> None:
    """Learn with bsfilter."""
    for flag, files in (("--add-clean", ham), ("--add-spam", spam)):
        run(["bsfilter", "--homedir", str(folder), flag, *files])
    run(["bsfilter", "--homedir", str(folder), "--update"])


def bsfilter_ask(folder: Path, file: str) -> str:
    """Return bsfilter's verdict, which is its exit code."""
    code, _ = run(["bsfilter", "--homedir", str(folder)], file, (0, 1))
    return "ham" if code else "spam"


def spamassassin_learn(folder: Path, ham: Files, spam: Files) -> None:
    """Learn with sa-learn, in the folder that `spamassassin_daemon` gives to spamd."""
    rules = folder / "rules"
    rules.mkdir()
    shutil.copy("/usr/share/spamassassin/23_bayes.cf", rules)
    (folder / "site").mkdir()
    (folder / "site/init.pre").write_text(
        "loadplugin Mail::SpamAssassin::Plugin::Bayes\n"
        "loadplugin Mail::SpamAssassin::Plugin::Check\n"
    )
    (folder / "site/local.cf").write_text(
        f"bayes_path {folder}/bayes\nbayes_auto_learn 0\nbayes_auto_expire 0\nreport_safe 0\n"
        "add_header all Status tests=_TESTS_\nclear_report_template\n"
    )
    base = ["-C", str(rules), "--siteconfigpath", str(folder / "site")]
    for flag, name in zip(("--ham", "--spam"), folders_of(folder, ham, spam), strict=True):
        run(["sa-learn", *base, "--no-sync", flag, name])
    run(["sa-learn", *base, "--sync"])


def spamassassin_daemon(folder: Path) -> list[list[str]]:
    """Return the command of spamd without network tests."""
    base = ["-C", f"{folder}/rules", "--siteconfigpath", f"{folder}/site"]
    run(["chmod", "-R", "a+rwX", str(folder)])  # spamd does not run as root
    socket = ["--socketpath", f"{folder}/socket", "--socketmode=0666"]
    return [["spamd", "-L", *base, *socket, "-m", "1", "-u", "nobody", "-x"]]


RSPAMD, REDIS_PORT = "/etc/rspamd", "16379"


def rspamd_daemons(folder: Path) -> list[list[str]]:
    """Write a configuration with the Bayes classifier alone; return the commands of the servers."""
    shutil.copytree(RSPAMD, folder / "conf")
    local = folder / "conf/local.d"
    for module in Path(RSPAMD, "modules.d").glob("*.conf"):
        (local / module.name).write_text("enabled = false;\n")
    (local / "redis.conf").write_text(f'servers = "127.0.0.1:{REDIS_PORT}";\n')
    (local / "classifier-bayes.conf").write_text('backend = "redis";\nautolearn = false;\n')
    (local / "options.inc").write_text('filters = "";\ndns { nameserver = ["127.0.0.1:1"]; }\n')
    run(["chown", "-R", "_rspamd", str(folder)])
    places = {"CONFDIR": "conf", "LOCAL_CONFDIR": "conf", "DBDIR": ".", "RUNDIR": "."}
    variables = [f"--var={name}={folder / path}" for name, path in places.items()]
    redis = ["redis-server", "--port", REDIS_PORT, "--bind", "127.0.0.1", "--save", ""]
    rspamd = ["rspamd", "-f", "-u", "_rspamd", "-g", "_rspamd", "-c", f"{folder}/conf/rspamd.conf"]
    return [[*redis, "--dir", str(folder)], [*rspamd, *variables]]


def rspamd_learn(_: Path, ham: Files, spam: Files) -> None:
    """Learn with rspamc; rspamd leaves out messages whose class it is already sure of."""
    for what, files in (("learn_ham", ham), ("learn_spam", spam)):
        for start in range(0, len(files), 500):
            run(["rspamc", "-h", "127.0.0.1:11334", what, *files[start : start + 500]], good=(0, 1))


def rspamd_ask(_: Path, file: str) -> str:
    """Return the verdict of rspamd's Bayes classifier."""
    answer = run(["rspamc", "-h", "127.0.0.1:11333", "symbols"], file)[1]
    for verdict in ("spam", "ham"):
        if f"BAYES_{verdict.upper()} (" in answer:
            return verdict
    return "unsure"


PROGRAMS = {
    "nbspam": Program("nbspam", nbspam_learn, nbspam_ask),
    "nbspam serve": Program("spamc", nbspam_learn, spamc_ask, nbspam_serve),
    "bogofilter": Program("bogofilter", bogofilter_learn, bogofilter_ask),
    "spamprobe": Program("spamprobe", spamprobe_learn, spamprobe_ask),
    "spamoracle": Program("spamoracle", spamoracle_learn, spamoracle_ask),
    "bsfilter": Program("bsfilter", bsfilter_learn, bsfilter_ask),
    "SpamAssassin": Program("spamd", spamassassin_learn, spamc_ask, spamassassin_daemon),
    "rspamd": Program("rspamd", rspamd_learn, rspamd_ask, rspamd_daemons, True),
}


class Result(NamedTuple):
    """What was measured of a program."""

    verdicts: list[str]  # of the tested ham, then of the tested spam
    learning: float  # wall seconds
    one: float  # wall seconds, the median of one message


@contextmanager
def running(commands: list[list[str]], folder: Path) -> Iterator[None]:
    """Run servers for 20 seconds before they are asked, and until the block ends."""
    with (folder / "log").open("wb") as log:
        servers = [subprocess.Popen(c, stdout=log, stderr=log, cwd=folder) for c in commands]
        try:
            if servers:
                time.sleep(20)
            yield
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait(60)


def measure(
    program: Program, work: Path, learned: list[Files], tested: Files, timed: int
) -> Result:
    """Train a program, ask it for all verdicts, and time some of them."""
    folder = Path(tempfile.mkdtemp(dir=work))
    folder.chmod(0o755)

    def learn() -> float:
        started = time.perf_counter()
        program.learn(folder, *learned)
        return time.perf_counter() - started

    seconds = 0.0 if program.learns_by_daemon else learn()
    with running(program.daemons(folder), folder):
        seconds = seconds or learn()
        verdicts, walls = [], []
        for file in tested:
            started = time.perf_counter()
            verdicts.append(program.ask(folder, file))
            walls.append(time.perf_counter() - started)
    step = max(1, len(walls) // timed)
    return Result(verdicts, seconds, statistics.median(walls[::step]))


def main() -> None:
    """Measure the programs that are here, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spamassassin", type=Path, required=True)
    parser.add_argument("--tested", type=int)
    parser.add_argument("--timed", type=int, default=200)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    chosen = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each run compiles nbspam anew
    classes = [[str(path) for _, path in of_class] for of_class in shuffled(chosen.spamassassin)]
    learned = [files[::2] for files in classes]
    ham, spam = (files[1::2][: chosen.tested] for files in classes)
    print("| | ham called spam % | spam not called spam % | unsure % | learning | one message |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="nbspam-programs-") as name:
        work = Path(name)
        work.chmod(0o755)
        for label in chosen.only.split(","):
            program = PROGRAMS[label]
            if label != "nbspam" and not shutil.which(program.needs):
                print(f"({program.needs} is not installed)", file=sys.stderr)
                continue
            result = measure(program, work, learned, ham + spam, chosen.timed)
            blocked = result.verdicts[: len(ham)].count("spam") / len(ham)
            missed = 1 - result.verdicts[len(ham) :].count("spam") / len(spam)
            unsure = result.verdicts.count("unsure") / len(result.verdicts)
            print(
                f"| {label} | {blocked:.2%} | {missed:.2%} | {unsure:.2%} |"
                f" {result.learning:.1f} s | {result.one * 1000:.1f} ms |",
                flush=True,
            )


if __name__ == "__main__":
    main()
