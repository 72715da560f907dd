"""`nbspam mail watch`: mail that comes, a lost connection, and the end."""

import signal
import threading
import time

import pytest
from imap_servers import Proxy
from junk_mails import many
from waiting import wait_until

from nbspam.cli.accounts import configured_places
from nbspam.mailbox.sorting import Stop, watch


@pytest.fixture
def watching(home):
    processes = []

    def start(*arguments):
        process = home.start("mail", "watch", *arguments)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ended(process, by=signal.SIGTERM):
    process.send_signal(by)
    out, err = process.communicate(timeout=20)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.few(2)
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_mail_is_filtered_as_it_comes(anywhere, watching, by):
    first, second, ham = many("spam", 1), many("spam", 1), many("ham", 1)
    anywhere.put(*first)
    process = watching("--interval", "5")
    wait_until(lambda: anywhere.mails("Junk") == first)
    time.sleep(0.3)  # by now it is idle
    anywhere.put(*second, *ham)
    wait_until(lambda: anywhere.mails("Junk") == [*first, *second])
    assert anywhere.mails() == ham
    code, out, err = ended(process, by)
    assert (code, err.count("\n")) == (0, 1)  # the note on the first run
    assert out.count("1 moved to Junk") == 2


@pytest.mark.long
def test_what_a_model_lacks_is_said_in_the_first_round_alone(home, local, watching):
    home.model.unlink()
    local.put(*many("spam", 1), folder="Junk")
    home.mail("learn", "-q", local.top)
    process = watching("--learn", local.top)
    for number in (1, 2):
        local.put(*many("ham", 1))
        wait_until(lambda number=number: len(home.state()["classified"]) == number)
    assert ended(process)[2].count("has learned only spam so far") == 1


def test_a_server_without_idle_is_asked_now_and_then(account, home, monkeypatch):
    mailbox = account(lacking=("IDLE",))
    looks = []

    def sort(connection):
        looks.append(connection)
        if len(looks) == 3:
            stop.request()

    with Stop() as stop:
        watch(configured_places()["home"], sort, stop, 0.05, print)
    assert len(looks) == 3
    assert mailbox.mails() == []


def test_it_connects_again_with_growing_pauses(mailbox, home):
    """The server cuts the connection at times, and is away for a while."""
    said, looks = [], []
    limit = [10**9]

    def sort(_):
        looks.append(time.monotonic())
        if len(looks) == 2:
            stop.request()

    with (
        Proxy(mailbox.server.plain, lambda seen: 0 if len(seen) > limit[0] else None) as proxy,
        Stop() as stop,
    ):
        home.write(mailbox.user, mailbox.server, port=proxy.port, tls="none")
        account = configured_places()["home"]
        limit[0] = 10
        thread = threading.Timer(0.25, lambda: limit.__setitem__(0, 10**9))
        thread.start()
        arguments = (account, sort, stop, 1, said.append)
        worker = threading.Thread(target=watch, args=arguments, kwargs={"first_pause": 0.05})
        worker.start()
        wait_until(lambda: len(looks) == 1)
        mailbox.put(*many("ham", 1))
        worker.join(20)
        thread.join()
    assert len(looks) == 2
    attempts = [sentence for sentence in said if "next attempt in" in sentence]
    assert 2 <= len(attempts) <= 4
    assert said[-1].endswith("reconnected")


def test_one_account_at_a_time(home, mailbox):
    text = home.config.read_text()
    home.config.write_text(text + text.replace("[mail.home]", "[mail.work]"))
    done = home.run("mail", "watch")
    assert done.code == 2
    assert "name one of home, work" in done.err
