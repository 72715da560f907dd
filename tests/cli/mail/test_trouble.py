"""What goes wrong with an account: one sentence with the remedy, and the mailbox as it was."""

import json
import resource
import socket

import pytest
from imap_servers import PASSWORD, Proxy
from junk_mails import many
from one_case import each


def fails(home, *arguments, code=1):
    done = home.run("mail", *arguments)
    assert done.code == code, done
    lines = [line for line in done.err.splitlines() if "the first run classifies" not in line]
    assert len(lines) == 1, done
    assert lines[0].startswith("nbspam: ")
    assert "Traceback" not in done.err
    assert PASSWORD not in done.err
    return lines[0].removeprefix("nbspam: ")


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["filter", "learn", "watch"])
def test_a_wrong_password(home, mailbox, command):
    wrong = home.path / "wrong"
    wrong.write_text("not the pässword\n")
    wrong.chmod(0o600)
    home.write(mailbox.user, mailbox.server, **{"password-file": "wrong"})
    sentence = fails(home, command)
    assert "the server refused the login ([AUTHENTICATIONFAILED]" in sentence
    assert sentence.endswith("(large providers want an app password, or a token)")
    assert "not the p" not in sentence


@pytest.mark.long
def test_a_server_that_is_away_or_says_nothing(home, mailbox):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        home.write(mailbox.user, mailbox.server, port=port, timeout=1)
        assert "timed out); try again later" in fails(home, "filter", code=75)
    sentence = fails(home, "filter", code=75)
    assert sentence.startswith(f"localhost:{port}: cannot be reached (Connection refused); try")
    home.write(mailbox.user, mailbox.server, host="no-such-host.invalid")
    assert "cannot be reached (Name or service not known)" in fails(home, "filter", code=75)


def test_a_certificate_that_does_not_fit(home, mailbox, monkeypatch):
    server = mailbox.server
    home.write(mailbox.user, server, **{"ca-file": None})
    said = "there is no protected connection (self-signed certificate), and nothing was sent"
    assert said in fails(home, "filter")
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **more: real("127.0.0.1", *rest, **more)
    )
    for tls, port in (("implicit", server.port), ("starttls", server.plain)):
        home.write(mailbox.user, server, host="other.example.org", port=port, tls=tls)
        assert "there is no protected connection (Hostname mismatch" in fails(home, "filter")


def test_a_port_without_tls(home, mailbox, monkeypatch):
    mailbox.put(*many("spam", 1))
    port = mailbox.server.plain
    home.write(mailbox.user, mailbox.server, port=port)
    assert 'correct host, port and tls (port 143 needs tls = "starttls")' in fails(home, "filter")
    home.write(mailbox.user, mailbox.server, port=port, tls="starttls")
    home.mail("filter")
    assert len(mailbox.mails("Junk")) == 1
    home.write(mailbox.user, mailbox.server, port=port, tls="none")
    home.mail("filter")
    monkeypatch.setattr("nbspam.mailbox.login._is_loopback", lambda _: False)
    assert "an unencrypted password is sent only to this machine" in fails(home, "filter")


def test_a_folder_that_is_not_there_or_may_not_be_filtered(home, mailbox):
    mailbox.put(*many("spam", 1))
    sentence = fails(home, "filter", "--junk", "Junkk")
    assert sentence.endswith("there is no folder 'Junkk'; did you mean Junk?")
    sentence = fails(home, "filter", "--junk", "INBOX")
    assert "INBOX is both the folder for spam and one of the others" in sentence
    home.write(mailbox.user, mailbox.server, folders=["Xyzzy"])
    assert "there is no folder 'Xyzzy'; name one of " in fails(home, "filter")
    assert len(mailbox.mails()) == 1
    home.write(mailbox.user, mailbox.server, folders=["INBOX", "Junk"])
    for command in ("filter", "learn"):
        assert "Junk is both the folder for spam and one of the others" in fails(home, command)
    home.write(mailbox.user, mailbox.server, folders=["INBOX", "Xyzzy"])
    done = home.run("mail", "filter")  # what was done before the failure is said
    assert (done.code, "1 moved to Junk" in done.out) == (1, True)


def test_no_folder_for_spam(home, account):
    mailbox = account(lacking=("SPECIAL-USE",))
    mailbox.put(*many("spam", 1))
    mailbox.client.create_folder("Spam")
    mailbox.client.delete_folder("Junk")
    done = home.run("mail", "filter")
    if done.code:  # Dovecot makes it again, as it was told to
        raise AssertionError(done)
    assert mailbox.mails("Junk") or mailbox.mails("Spam")


@pytest.mark.parametrize("lacking", [pytest.param((), marks=pytest.mark.long), ("MOVE",)])
def test_a_quota_that_is_full(home, account, lacking):
    mailbox = account(lacking=lacking, quota_rule="*:messages=10")
    ham, spam = many("ham", 4), many("spam", 6)
    mailbox.put(*ham, *spam)
    before = mailbox.all()
    if not lacking:  # a move takes no room
        home.mail("filter")
        assert len(mailbox.mails("Junk")) == 6
        return
    done = home.run("mail", "filter", "-q")
    assert (done.code, done.err.count("left out INBOX, UID")) == (1, 6)
    assert "(Prize Desk <winner@prize.example>: CLICK HERE NOW" in done.err
    assert "Quota exceeded" in done.err.splitlines()[-1]
    assert mailbox.all() == before
    assert mailbox.mails("Junk") == []
    assert home.state()["pending"] is None


def literal(said):
    at = said.find(b"BODY[] {")
    return at + 200 if at >= 0 and len(said) > at + 200 else None


@pytest.mark.long
def test_a_connection_that_is_cut_within_a_message(home, mailbox):
    spam = many("spam", 5)
    mailbox.put(*spam)
    before = mailbox.all()
    with Proxy(mailbox.server.plain, literal) as proxy:
        home.write(mailbox.user, mailbox.server, port=proxy.port, tls="none")
        for _ in range(2):
            done = home.run("mail", "filter", "-q")
            assert (done.code, done.err.count("left out INBOX, UID")) == (75, 5)
            assert "the connection was lost" in done.err.splitlines()[-1]
        assert proxy.cuts == 2 * 9  # of five messages, then three, two, one, …
        done = home.run("classify", f"imaps://{mailbox.user}@localhost/INBOX")
        assert done.code == 75
    assert mailbox.mails() == [each for each, *_ in before]
    home.write(mailbox.user, mailbox.server)
    home.mail("filter")
    assert mailbox.mails("Junk") == spam


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
def test_a_connection_that_is_cut_at_each_answer(home, mailbox, step):
    """Cut after the n-th answer, for all n or some: the next run always goes on."""
    spam, ham = many("spam", 3), many("ham", 3)
    mailbox.put(*spam, *ham)
    left = 1
    allowed = [0]

    def cut(said):
        allowed[0] -= 1
        return len(said) if allowed[0] < 0 else None

    with Proxy(mailbox.server.plain, cut) as proxy:
        home.write(mailbox.user, mailbox.server, port=proxy.port, tls="none")
        while left < 40:
            allowed[0] = left
            done = home.run("mail", "filter", "-q")
            if done.code == 0:
                break
            assert done.code == 75, done
            assert done.err.count("\n") == 1, done
            left += step
            assert sorted([*mailbox.mails(), *mailbox.mails("Junk")]) == sorted([*spam, *ham])
    assert 10 < left < 40
    assert mailbox.mails() == ham
    assert sorted(mailbox.mails("Junk")) == sorted(spam)


@pytest.mark.long
def test_a_message_of_50_megabytes(home, mailbox):
    big = many("spam", 1)[0] + b"lorem ipsum\n" * (50 * 2**20 // 12)
    mailbox.put(*many("spam", 1))
    maildir = mailbox.server.top / mailbox.user / "Maildir"
    path = maildir / "tmp" / "1700000000.1.host"
    path.write_bytes(big)
    path.chmod(0o666)
    path = path.rename(maildir / "new" / path.name)
    with Proxy(mailbox.server.plain) as proxy:
        home.write(mailbox.user, mailbox.server, port=proxy.port, tls="none")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        home.mail("filter", "--spam-cutoff", "0.2")
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert used < 250_000  # KB
    assert sum("(FLAGS BODY.PEEK[]<0.16777216>)" in line for line in proxy.said) == 1
    found = [each for each in maildir.rglob("1700000000.1.host*") if each.is_file()]
    found += [each for each in maildir.rglob("*") if each.stat().st_size == len(big)]
    assert len({each.read_bytes() for each in found}) == 1
    assert len(mailbox.uids()) + len(mailbox.uids("Junk")) == 2


def test_a_traceback_holds_no_password(home, mailbox, monkeypatch):
    monkeypatch.setenv("NBSPAM_DEBUG", "1")
    (home.path / "password").write_text("swordfish\n")
    done = home.run("mail", "filter")
    assert "Traceback" in done.err
    assert "swordfish" not in done.err


@each("folder, junk", [("Gone", "Gone too"), ("INBOX", "Spam")])
def test_a_move_from_a_folder_that_is_gone_or_has_new_uids_is_over(home, account, folder, junk):
    """UIDs that are others by now remove nothing, and no account ends there."""
    mailbox = account({"junk": "Spam"})
    mailbox.client.create_folder("Spam")
    mailbox.put(*many("spam", 2), *many("ham", 1))
    home.mail("filter")
    state = home.state()
    messages = {"3": [next(iter(state["junked"])), False]}
    pending = [folder, 1, junk, 1, 1, True, messages]  # by COPY, from UIDs that are others now
    [path] = (home.path / "state").rglob(f"{mailbox.user}@*.json")
    path.write_text(json.dumps(state | {"pending": pending}))
    mailbox.put(*many("spam", 1))
    home.mail("filter")
    assert json.loads(path.read_text())["pending"] is None
    assert (len(mailbox.mails()), len(mailbox.mails("Spam"))) == (1, 3)
    path.unlink()
