"""The script alone, and in a real Postfix.

Postfix has fixed folders and a fixed port and starts as root.  So it runs in name spaces of its
own, where the system's folders are hidden behind the test's: nothing outside is touched.
"""

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from string import Template

import mails
import pytest
from home import (
    FAULTS,
    GOLDEN,
    ROOT,
    Home,
    bare,
    forged,
    learn_mail_with,
    need,
    need_name_spaces,
    received_line,
    recipes,
    sent,
    unmarked,
    verdict,
)
from imap_servers import written
from waiting import running, wait_until

MAIN = (GOLDEN / "main.cf").read_text()
# Postfix's programs are where only root's PATH leads.
ENVIRONMENT = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
SEND = """
import smtplib, sys
with smtplib.SMTP("127.0.0.1", timeout=30) as server:
    server.sendmail("sender@example.net", ["hal@example.org"], sys.stdin.buffer.read())
"""


def script(home, model, tools):
    text = recipes()["postfix-filter"]
    for path, own in (("/usr/local/bin", tools), ("/var/lib/nbspam/model.json", model)):
        assert path in text
        text = text.replace(path, str(own))
    return home.write("bin/postfix-filter", text, 0o755)


@pytest.fixture
def alone(trained):
    tools = trained.program.parent
    run = script(trained, trained.model, tools)
    sendmail = tools / "sendmail"

    def filter_(message, code=0):
        sendmail.write_text(
            f'#!/bin/sh\nprintf "%s " "$@" > {trained.path}/arguments\n'
            f"cat > {trained.path}/sent\nexit {code}\n"
        )
        sendmail.chmod(0o755)
        ended = trained.run(run, "-f", "a@example.net", "--", "hal@example.org", stdin=message)
        sent = trained.path / "sent"
        return ended, sent.read_bytes() if sent.exists() else None

    return filter_


@pytest.mark.long
def test_the_script_hands_the_mail_back_with_a_header(trained, alone):
    for message in (mails.SPAM, mails.ODD, mails.ODD.rstrip()):
        for received in (message, forged(message)):
            ended, back = alone(received)
            assert ended == (0, b"", "")
            assert message == unmarked(back)
            assert verdict(back) == ("spam" if message == mails.SPAM else "ham")
    arguments = (trained.path / "arguments").read_text()
    assert arguments == "-G -i -f a@example.net -- hal@example.org "


@pytest.mark.few(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_with_a_broken_nbspam_nothing_is_handed_back(trained, alone, fault):
    trained.break_program(fault)
    ended, back = alone(forged(mails.SPAM))
    assert (ended.code, back) == (75, None)


@pytest.mark.parametrize("limit", ["ulimit -f 8", "TMPDIR=/nowhere; export TMPDIR"])
def test_without_room_for_a_copy_nothing_is_handed_back(trained, alone, limit):
    script = trained.path / "bin" / "postfix-filter"
    script.write_text(script.read_text().replace("\n", f"\n{limit}\n", 1))
    ended, back = alone(mails.HAM + b"x" * 300_000)
    assert (ended.code, back) == (75, None)


def test_if_sendmail_fails_the_mail_is_kept_and_no_copy_is_left_behind(trained, alone):
    folder = trained.path / "tmp"
    folder.mkdir()
    trained.environment["TMPDIR"] = str(folder)
    alone(mails.HAM)
    for code in (1, 75):
        assert alone(mails.HAM, code)[0].code == 75, code
    trained.model.unlink()
    alone(mails.HAM)
    assert list(folder.iterdir()) == []


def make_passable(top):
    """Return shell lines that let any user come to this Python and this source tree.

    Both may lie under a folder that only root may enter; in our own name space an open one takes
    its place, with nothing in it but what is needed.
    """
    hidden = {}
    for path in {ROOT, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}:
        for parent in reversed(path.parents):
            if not parent.stat().st_mode & 0o001:
                hidden[path] = parent
                break
    lines = []
    for number, path in enumerate(hidden):
        (top / f"shown{number}").mkdir()
        lines.append(f"mount --bind {path} {top}/shown{number}")
    lines += [f"mount -t tmpfs -o mode=755 none {parent}" for parent in set(hidden.values())]
    for number, path in enumerate(hidden):
        lines += [f"mkdir -p {path}", f"mount --bind {top}/shown{number} {path}"]
    return lines


class Postfix:
    """Postfix as it is installed, but for main.cf and what the page says of master.cf."""

    def __init__(self, top):
        self.top = top
        self.read = 0
        self.home = Home(top / "mail")
        self.model = top / "model.json"
        for name in ("spool", "lib"):
            (top / name).mkdir()
        shutil.chown(top / "lib", "postfix")
        for path in (self.home.path, *self.home.path.rglob("*")):
            shutil.chown(path, "nobody", "nogroup")
        (top / "etc").mkdir()
        # what the package brought, and nothing that a system's owner wrote
        for name in ("dynamicmaps.cf", "postfix-files", "post-install", "postfix-script"):
            if Path("/etc/postfix", name).exists():
                shutil.copy(f"/etc/postfix/{name}", top / "etc")
        uid, gid = (int(self.id(flag)) for flag in ("-u", "-g"))
        (top / "etc" / "main.cf").write_text(Template(MAIN).substitute(top=top, uid=uid, gid=gid))
        program = script(self.home, self.model, self.home.program.parent)
        services = recipes()["master.cf"].replace("user=nbspam", "user=nobody")
        services = services.replace("/usr/local/lib/nbspam/postfix-filter", str(program))
        master = Path("/usr/share/postfix/master.cf.dist").read_text()
        # the new lines stand for the line of that service that was there
        master, times = re.subn(r"^smtp +inet .*\n", "", master, flags=re.M)
        assert times == 1
        # no service needs a jail here, nor is one made
        master = re.sub(r"^(\w+ +\w+ +\S+ +\S+ +)y ", r"\1n ", master, flags=re.M)
        (top / "etc" / "master.cf").write_text(master + services)
        binds = {"etc": "/etc/postfix", "spool": "/var/spool/postfix", "lib": "/var/lib/postfix"}
        lines = ["set -e", "ip link set lo up", *make_passable(top)]
        lines += [f"mount --bind {top}/{own} {place}" for own, place in binds.items()]
        self.setup = "\n".join([*lines, "exec postfix start-fg"])

    @staticmethod
    def id(flag):
        return subprocess.run(["id", flag, "nobody"], capture_output=True, check=True).stdout

    def start(self):
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c", self.setup],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
        )

    def answers(self):
        return "daemon started" in self.log()

    def stop(self):
        self.within("postfix", "abort")

    def within(self, *command, stdin=b""):
        done = subprocess.run(
            ["nsenter", f"--target={self.process.pid}", "--mount", "--net", *map(str, command)],
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
            env=ENVIRONMENT,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def send(self, message):
        message = message.replace(b"\n", b"\r\n")
        assert self.within(sys.executable, "-c", SEND, stdin=message) == (0, "", "")

    def log(self):
        return written(self.top / "log")[self.read :]

    def until(self, condition):
        wait_until(condition, said=self.log)


@pytest.fixture(scope="module")
def postfix():
    need("postfix", "ip")
    need_name_spaces("--mount", "--net")
    with running(Postfix) as server:
        yield server


@pytest.fixture
def server(postfix, model):
    for path in postfix.home.everything():
        path.unlink()
    shutil.copy(model, postfix.model)
    shutil.chown(postfix.model, "nobody", "nogroup")
    postfix.read += len(postfix.log())
    return postfix


@pytest.mark.long
def test_each_mail_comes_back_once_and_with_a_header(server):
    for number, message in enumerate((mails.SPAM, mails.HAM, mails.ODD), 1):
        server.send(message)
        server.until(lambda number=number: len(server.home.mails()) == number)
    delivered = server.home.mails()
    assert [sent(bare(found)) for found in delivered] == [mails.SPAM, mails.HAM, mails.ODD]
    assert [verdict(found) for found in delivered] == ["spam", "ham", "ham"]
    # no loop: each mail went through the filter once (the log is written after the delivery)
    server.until(lambda: "queue is empty" in server.within("postqueue", "-p")[1])
    server.until(lambda: server.log().count("relay=nbspam") >= 3)
    assert server.log().count("relay=nbspam") == 3


def replace_model(server, received, tmp_path):
    model = tmp_path / "model.json"
    learn_mail_with(received, tmp_path, model)
    shutil.chown(model, "nobody", "nogroup")
    model.replace(server.model)


@pytest.mark.long
def test_mail_that_postfix_received_is_not_doubted(server, tmp_path):
    server.send(mails.HAM)
    server.until(lambda: len(server.home.mails()) == 1)
    replace_model(server, received_line(server.home.mails()[0]), tmp_path)
    server.send(mails.SPAM)
    server.until(lambda: len(server.home.mails()) == 2)
    assert [verdict(found) for found in server.home.mails()] == ["ham", "spam"]


@pytest.mark.long
def test_without_a_model_the_mail_waits_in_the_queue(server):
    kept = server.model.rename(server.top / "kept.json")
    server.send(mails.HAM)
    server.until(lambda: "status=deferred" in server.log())
    assert str(server.model) in server.log()
    assert "hal@example.org" in server.within("postqueue", "-p")[1]
    assert server.home.everything() == []

    kept.rename(server.model)
    server.within("postqueue", "-f")
    server.until(lambda: len(server.home.mails()) == 1)
    assert [sent(bare(found)) for found in server.home.mails()] == [mails.HAM]
    server.until(lambda: "queue is empty" in server.within("postqueue", "-p")[1])


class PostfixWithMilter(Postfix):
    """Postfix that asks spamass-milter, which asks `nbspam serve`."""

    def __init__(self, top, model):
        super().__init__(top)
        shutil.copy(model, self.model)
        master = top / "etc" / "master.cf"
        master.write_text(master.read_text().replace("  -o content_filter=nbspam:dummy\n", ""))
        with (top / "etc" / "main.cf").open("a") as main:
            lines = recipes()["spamass-milter"]
            main.write(lines.replace("unix:spamass/spamass.sock", "inet:127.0.0.1:8891"))
        socket, command = top / "nbspam.sock", f"{sys.executable} -m nbspam serve --quiet"
        options = recipes()["spamass-milter-options"].strip().removeprefix("OPTIONS=").strip('"')
        options = options.replace("/run/nbspam.sock", str(socket)).replace("-i 127.0.0.1", "")
        self.setup = self.setup.replace(
            "exec postfix",
            f"{command} --x-spam --socket {socket} -m {self.model} & echo $! > {top}/pids\n"
            f"spamass-milter -p inet:8891@127.0.0.1 {options} & echo $! >> {top}/pids\n"
            "exec postfix",
        )

    def answers(self):
        return super().answers() and (self.top / "nbspam.sock").exists()

    @property
    def pids(self):
        return list(map(int, (self.top / "pids").read_text().split()))

    def stop(self):
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, 15)
        super().stop()


@pytest.mark.long
def test_a_milter_marks_spam_and_without_the_server_mail_is_delivered(model, tmp_path):
    need("postfix", "ip", "spamass-milter", "spamc")
    need_name_spaces("--mount", "--net")
    with running(partial(PostfixWithMilter, model=model)) as server:
        forged = b"X-Spam-Flag: YES\nX-Spam-Status: Yes\n"
        for number, message in enumerate((mails.SPAM, forged + mails.HAM, mails.ODD), 1):
            server.send(message)
            server.until(lambda number=number: len(server.home.mails()) == number)
        flags = [b"X-Spam-Flag: YES" in found for found in server.home.mails()]
        assert flags == [True, False, False], server.home.mails()
        # not doubted, although the milter sees a mail before Postfix writes its Received line
        replace_model(server, received_line(server.home.mails()[0]), tmp_path)
        server.send(mails.SPAM)
        server.until(lambda: len(server.home.mails()) == 4)
        assert b"X-Spam-Flag: YES" in server.home.mails()[3]
        os.kill(server.pids[0], 15)
        server.send(mails.SPAM)
        server.until(lambda: len(server.home.mails()) == 5)
        assert b"X-Spam-Flag" not in server.home.mails()[4]
