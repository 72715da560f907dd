"""A model for each user: which one judges, who may be a user, and whose trouble a bad model is."""

import os
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from served_programs import HAM, SPAM
from servers import AS_HAM, AS_SPAM, LEARNED, OK, held, put, request, together
from waiting import wait_until

import nbspam
from nbspam.cli.program import nbspam as nbspam_command
from nbspam.errors import ModelError, OptionError, ServingError
from nbspam.reading.message import parse
from nbspam.reading.senders import SenderLists
from nbspam.serving.models import Models, ServerConfig, UserFiles
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import TOKENIZER_VERSION, tokenize


def train(path, word):
    pairs = ("spam", word), ("ham", "meeting lunch notes")
    nbspam.train([(label, f"{text} {i}") for i in range(200) for label, text in pairs]).save(path)


def mail(word):
    return b"Subject: %s\n\n%s %s\n" % (word, word, word)


def verdict(served, user, message):
    reply = served.ask(request("SYMBOLS", message, user=user))
    assert reply.startswith(OK), reply
    return reply.rpartition(b"\r\n\r\n")[2].split(b",")[0]


def tell(served, user, message, *headers):
    return served.ask(request("TELL", message, *headers, user=user))


def probability(served, user, message):
    reply = served.ask(request("REPORT", message, user=user))
    assert reply.startswith(OK), reply
    return re.search(rb"probability (0|1)\.(\d{4})", reply)[0]


def by_file(own, common, message):
    with nbspam.open(own, base=common) as both:
        return f"probability {both.classify(message).probability:.4f}".encode()


# Which model judges


def test_each_user_is_judged_by_their_own_model_read_through_the_common_one(serving, model, users):
    train(users / "hal.json", "xyzzy")
    train(users / "ann@example.org.json", "plugh")
    with serving(model, users=users) as served:
        for _ in range(3):
            assert verdict(served, "hal", mail(b"xyzzy")) == b"NBSPAM_SPAM"
            assert verdict(served, "hal", mail(b"plugh")) != b"NBSPAM_SPAM"
            assert verdict(served, "ann@example.org", mail(b"plugh")) == b"NBSPAM_SPAM"
            assert verdict(served, "ann@example.org", mail(b"xyzzy")) != b"NBSPAM_SPAM"
            assert verdict(served, "nobody", mail(b"xyzzy")) != b"NBSPAM_SPAM"
            assert verdict(served, "nobody", SPAM) == b"NBSPAM_SPAM"
            assert verdict(served, "hal", SPAM) == b"NBSPAM_SPAM"
            assert verdict(served, "hal", HAM) == b"NBSPAM_HAM"
        for size in (40_000, 200_000):  # in a process for all, in that for large ones
            message = b"Subject: xyzzy\n\n" + b"xyzzy\n" * (size // 6)
            for user, is_spam in (("hal", True), ("nobody", False), ("hal", True)):
                assert (verdict(served, user, message) == b"NBSPAM_SPAM") == is_spam
    assert served.said == []


@each("pattern", ["%u.json", "%u/model.json", "mail-%u"])
def test_a_pattern_whatever_the_umask(serving, model, users, pattern):
    before = os.umask(0)
    try:
        with serving(model, users=users / pattern) as served:
            assert tell(served, "hal", SPAM, *AS_SPAM) == LEARNED
            assert tell(served, "hal", SPAM, *AS_SPAM) == OK + b"\r\n\r\n"
    finally:
        os.umask(before)
    path = users / pattern.replace("%u", "hal")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with Lookup(path) as lookup:
        assert lookup.metadata.learned.messages == (0, 1)


def test_a_users_model_judges_from_its_first_message_on(serving, model, users):
    """And what is forgotten again leaves the common model's verdict."""
    with serving(model, users=users) as served:
        assert tell(served, "hal", mail(b"xyzzy"), "Remove: local") == OK + b"\r\n\r\n"
        assert list(users.iterdir()) == []
        common = {m: probability(served, "hal", m) for m in (SPAM, HAM, mail(b"xyzzy"))}
        assert common == {m: by_file(users / "hal.json", model, m) for m in common}
        assert tell(served, "hal", mail(b"xyzzy"), *AS_SPAM) == LEARNED
        own = {m: probability(served, "hal", m) for m in common}
        assert own == {m: by_file(users / "hal.json", model, m) for m in common}
        assert own[mail(b"xyzzy")] > common[mail(b"xyzzy")]
        assert {m: probability(served, "ann", m) for m in common} == common
        for message, expected in ((SPAM, b"NBSPAM_SPAM"), (HAM, b"NBSPAM_HAM")):
            assert verdict(served, "hal", message) == expected
        forgotten = OK + b"DidRemove: local\r\n\r\n\r\n"
        assert tell(served, "hal", mail(b"xyzzy"), "Remove: local") == forgotten
        for message, before in common.items():
            assert float(probability(served, "hal", message)[12:]) == pytest.approx(
                float(before[12:]), abs=0.003
            )
    assert served.said == []


def test_one_slip_of_a_user_changes_little(serving, model, users):
    with serving(model, users=users) as served:
        assert tell(served, "hal", b"Subject: hi\n\nnothing of that\n", *AS_SPAM) == LEARNED
        assert tell(served, "ann", SPAM + b"as well\n", *AS_HAM) == LEARNED
        for user in ("hal", "ann"):
            assert verdict(served, user, HAM) == b"NBSPAM_HAM"
        assert verdict(served, "hal", SPAM) == b"NBSPAM_SPAM"


def test_a_model_of_an_earlier_version_goes_on_with_the_common_one(serving, model, users):
    """One that learned without it goes on learning; one of older rules only answers."""
    own, old = users / "hal.json", b'"rules": %d}' % (TOKENIZER_VERSION - 1)
    train(own, "xyzzy")
    assert b'"calibrated_by": "training"' in own.read_bytes()
    with serving(model, users=users) as served:
        assert verdict(served, "hal", mail(b"xyzzy")) == b"NBSPAM_SPAM"
        assert probability(served, "hal", SPAM) == by_file(own, model, SPAM)
        assert tell(served, "hal", mail(b"plugh"), *AS_SPAM) == LEARNED
        assert verdict(served, "hal", mail(b"xyzzy")) == b"NBSPAM_SPAM"
        assert served.said == []
        for part in (b'"calibrated_by": "base"', b'"messages": [200, 201]'):
            assert part in own.read_bytes()
        own.write_bytes(own.read_bytes().replace(b'"rules": %d}' % TOKENIZER_VERSION, old))
        before = own.read_bytes()
        assert verdict(served, "hal", mail(b"xyzzy")) == b"NBSPAM_SPAM"
        for how in (AS_SPAM, AS_HAM, ("Remove: local",)):
            reply = tell(served, "hal", mail(b"plugh"), *how)
            assert reply.startswith(b"SPAMD/1.0 74 ")
            assert b"was made with tokenizer rules" in reply
        assert own.read_bytes() == before


def test_a_common_model_that_is_replaced_is_beneath_open_models_too(serving, model, users):
    def asked():
        return [probability(served, user, mail(b"xyzzy")) for user in ("hal", "ann")]

    with serving(model, users=users) as served:
        assert tell(served, "hal", HAM, *AS_HAM) == LEARNED
        before = asked()
        train(model, "xyzzy")
        after = asked()
        for user, old, new in zip(("hal", "ann"), before, after, strict=True):
            assert float(new[12:]) > float(old[12:]) + 0.1
            assert new == by_file(users / f"{user}.json", model, mail(b"xyzzy"))
        whole = model.read_bytes()
        model.write_bytes(b"no model")
        assert asked() == after
        model.write_bytes(whole)
        assert asked() == after
    assert len(served.said) == 1  # that it cannot be used


def test_a_model_unlike_the_common_one_is_its_users_trouble_alone(serving, model, users):
    spoiled = model.read_bytes().replace(b'"evidence"', b'"sum"', 1)
    (users / "hal.json").write_bytes(spoiled)
    with serving(model, users=users) as served:
        reply = served.ask(request("CHECK", SPAM, user="hal"))
        assert reply.startswith(b"SPAMD/1.0 74 Model unusable: ")
        assert b"has the scoring sum, and its base" in reply
        assert tell(served, "hal", SPAM, *AS_SPAM).startswith(b"SPAMD/1.0 74 ")
        assert verdict(served, "ann", SPAM) == b"NBSPAM_SPAM"
    model.write_bytes(spoiled)
    with pytest.raises(ModelError, match="has the scoring sum, and a base must have evidence"):
        Models(ServerConfig(model, users=UserFiles.from_pattern(users)))


def test_the_common_model_is_never_a_users(serving, model):
    """Even where it lies among theirs."""
    model.parent.chmod(0o700)
    before = model.read_bytes()
    with serving(model, users=model.parent) as served:
        assert tell(served, "model", SPAM, *AS_HAM).startswith(b"SPAMD/1.0 74 ")
        assert served.ask(request("CHECK", SPAM, user="model")).startswith(b"SPAMD/1.0 74 ")
        assert verdict(served, "hal", SPAM) == b"NBSPAM_SPAM"
    assert model.read_bytes() == before


def test_what_one_learns_no_other_learns(serving, model, users):
    before = model.read_bytes()
    names = [f"user{i}" for i in range(6)]
    todo = iter(names * 3)
    with serving(model, users=users) as served:
        together(18, lambda: tell(served, next(todo), SPAM, *AS_SPAM))
    assert model.read_bytes() == before
    for name in names:
        with Lookup(users / f"{name}.json") as lookup:
            assert lookup.metadata.learned.messages == (0, 1)


# Who may be a user


BAD = [
    *("", ".", "..", ".hidden", "-rf", "a/b", "../model", "/etc/passwd", "a\\b", "a b", "a\0b"),
    *("é", "häl", "a\nb", "x" * 129, "a%b", "%u", "a:b", "~root", "a*", "hal\r", "$HOME", "`id`"),
    *("hal\0", "hal\n", "hal ", "*"),
]


def test_odd_names_have_no_model_and_others_a_file_of_the_folder(users):
    for name in ("hal", "a" * 128, "hal@example.org", "a..b", "x+y_z-1"):
        assert UserFiles.from_pattern(users).path(name) == users / f"{name}.json"
    for files in (UserFiles.from_pattern(users), UserFiles.from_pattern(users / "%u/model.json")):
        assert [name for name in BAD if files.path(name) is not None] == []


@given(st.text(max_size=140))
def test_no_name_leaves_the_folder(name):
    root = Path("/r")
    path = UserFiles(root, "%u/m-%u.json").path(name)
    assert path is None or (path.parent.parent, path.name) == (root, f"m-{name}.json")


def test_an_odd_name_has_the_common_verdict_and_teaches_nobody(serving, model, users):
    (users.parent / "evil.json").write_text("x")
    with serving(model, users=users) as served:
        for name in ("../evil", "", "a/../../evil", "évil"):
            asked = request("CHECK", SPAM).replace(b"nobody", name.encode())
            assert b"Spam: True" in served.ask(asked)
            reply = served.ask(request("TELL", SPAM, *AS_SPAM).replace(b"nobody", name.encode()))
            assert reply.startswith(b"SPAMD/1.0 76 Bad header line: (the User header has no name")
        assert b"Spam: True" in served.ask(b"CHECK SPAMC/1.5\r\n\r\n" + SPAM)
    names = {path.name for path in users.parent.iterdir()} - {"socket"}
    assert names == {"evil.json", "model.json", "users"}
    assert list(users.iterdir()) == []


@pytest.mark.parametrize("kind", ["others", "link of a folder"])
def test_nothing_but_a_regular_file_is_a_model(serving, model, users, tmp_path, kind):
    pattern, names = users, ["link", "folder", "fifo"]
    if kind == "others":
        (users / "link.json").symlink_to(model)
        (users / "folder.json").mkdir()
        os.mkfifo(users / "fifo.json")
    else:
        pattern, names = users / "%u/model.json", ["hal"]
        (users / "hal").symlink_to(tmp_path)  # where model.json is
    before = model.read_bytes()
    with serving(model, users=pattern) as served:
        for name in names:
            for message in (SPAM, b"x" * 40_000):
                reply = served.ask(request("PROCESS", message, user=name))
                assert reply.startswith(b"SPAMD/1.0 74 Model unusable: ")
                assert reply.count(b"\n") == 1
            assert tell(served, name, SPAM, *AS_SPAM).startswith(b"SPAMD/1.0 74 ")
        assert served.ask(request("PROCESS", b"x" * 40_000)).startswith(OK)
        assert verdict(served, "ann", SPAM) == b"NBSPAM_SPAM"
    assert model.read_bytes() == before


def test_a_folder_that_others_can_write_to_or_that_is_missing_is_refused(users, monkeypatch):
    (users / "file").write_text("")
    for place, said in (("none", "mode 0700"), ("file", "not a folder|cannot be kept there")):
        with pytest.raises(ServingError, match=said):
            UserFiles.from_pattern(users / place)
    for mode in (0o777, 0o720, 0o702):
        users.chmod(mode)
        with pytest.raises(ServingError, match=r"other users than the server's .*\(mode 0700\)"):
            UserFiles.from_pattern(users)

    users.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ServingError, match="other users than the server's"):
        UserFiles.from_pattern(users)


def test_a_folder_that_everybody_could_put_another_in_place_of_is_refused(tmp_path, users):
    link = tmp_path / "link"
    link.symlink_to(users)
    tmp_path.chmod(0o777)
    for pattern in (users, users / "%u/model.json"):
        with pytest.raises(ServingError, match=f"^{users}: .*; run chmod o-w {tmp_path}$"):
            UserFiles.from_pattern(pattern)
    tmp_path.chmod(0o1777)
    assert UserFiles.from_pattern(link).root == users


@each("pattern", ["%u.json", "%u/model.json"])
def test_what_becomes_a_link_or_a_pipe_after_the_look_is_not_followed(
    model, users, tmp_path, monkeypatch, pattern
):
    """Each worker would wait for a pipe; the model and the list behind the links are others'."""
    files = UserFiles.from_pattern(users / pattern)
    path = files.path("hal")
    path.parent.mkdir(exist_ok=True)
    stamps = {path: ("a look",), path.with_suffix(".allow"): ("a look",)}
    monkeypatch.setattr(UserFiles, "stamp", lambda _, path: stamps.get(path, ()))
    (tmp_path / "secret").write_text("secret\n")
    config = ServerConfig(model, users=files, senders=SenderLists((), (), ["mx"]))
    models = Models(config)
    path.symlink_to(model)
    with pytest.raises(ModelError, match=f"{path}: "):
        models.version_for("hal")
    stamps.pop(path)
    path.unlink()
    path.with_suffix(".allow").symlink_to(tmp_path / "secret")
    with pytest.raises(OptionError, match=r"\.allow cannot be read") as raised:
        models.version_for("hal")
    assert "secret" not in str(raised.value)
    path.with_suffix(".allow").unlink()
    os.mkfifo(path.with_suffix(".allow"))
    assert models.version_for("hal").senders.auth_hosts == ("mx",)


def test_a_pattern_has_the_name_once(users):
    for pattern in ("%u/%u", "%u/a/b", "a%u/b%u.json", "%u%u"):
        with pytest.raises(ServingError, match="%u"):
            UserFiles.from_pattern(users / pattern)


# Models that change, vanish, break


def test_a_model_that_changes_vanishes_or_breaks_is_its_users_trouble_alone(serving, model, users):
    path = users / "hal.json"
    train(path, "xyzzy")
    train(users / "ann.json", "plugh")
    with serving(model, users=users) as served:

        def others():
            assert verdict(served, "ann", mail(b"plugh")) == b"NBSPAM_SPAM"
            assert verdict(served, "nobody", SPAM) == b"NBSPAM_SPAM"

        assert verdict(served, "hal", mail(b"xyzzy")) == b"NBSPAM_SPAM"
        train(path, "frotz")
        assert verdict(served, "hal", mail(b"frotz")) == b"NBSPAM_SPAM"
        assert verdict(served, "hal", mail(b"xyzzy")) != b"NBSPAM_SPAM"
        others()
        whole = path.read_bytes()
        for broken in (b"", b"{", whole[:200], b"not a model\n" * 100, whole[: len(whole) // 2]):
            path.write_bytes(broken)
            reply = served.ask(request("PROCESS", mail(b"frotz"), user="hal"))
            assert reply.startswith((b"SPAMD/1.0 74 Model unusable: ", OK))
            assert reply.count(b"\n") == 1 or reply.startswith(OK)
            others()
        path.unlink()
        assert verdict(served, "hal", SPAM) == b"NBSPAM_SPAM"
        path.write_bytes(whole)
        assert verdict(served, "hal", mail(b"frotz")) == b"NBSPAM_SPAM"
        others()
    assert len(served.said) >= 3
    assert all("hal.json" in sentence for sentence in served.said)


def test_a_locked_model_is_its_users_wait_alone(serving, model, users):
    with serving(model, users=users, learning=0.5) as served:
        assert tell(served, "hal", SPAM, *AS_SPAM) == LEARNED
        assert verdict(served, "hal", SPAM) == b"NBSPAM_SPAM"  # a process that judges is there
        with held(users / "hal.json"):
            replies = []
            waiting = threading.Thread(
                target=lambda: replies.append(tell(served, "hal", HAM, *AS_HAM))
            )
            waiting.start()
            assert tell(served, "ann", SPAM, *AS_SPAM) == LEARNED
            assert verdict(served, "hal", SPAM) == b"NBSPAM_SPAM"
            assert waiting.is_alive()  # ann has not waited for it
            waiting.join()
        assert replies[0].startswith(b"SPAMD/1.0 75 ")
        assert tell(served, "hal", HAM, *AS_HAM) == LEARNED


def test_each_user_has_lists_of_senders_before_those_of_all(serving, model, users):
    """Beside the model, or without one; they are read again when they change."""
    train(users / "hal.json", "xyzzy")
    (users / "hal.block").write_text("@pool.example\n")
    (users / "ann.allow").write_text("win@prize.example\n")
    common = SenderLists(["@pool.example"], ["@shop.example"], ["mx.example.net"])
    proof = b"Authentication-Results: mx.example.net; spf=pass smtp.mailfrom=%s\n"

    def asked(user, domain, message=HAM):
        return verdict(served, user, proof % domain + b"From: win@" + domain + b"\n" + message)

    with serving(model, users=users, senders=common) as served:
        for user in ("hal", "ann", "nobody", "../hal"):
            assert asked(user, b"shop.example") == b"NBSPAM_SPAM"
            assert asked(user, b"prize.example") == b"NBSPAM_HAM"
            assert (asked(user, b"pool.example", SPAM) == b"NBSPAM_SPAM") == (user == "hal")
            assert (asked(user, b"prize.example", SPAM) == b"NBSPAM_HAM") == (user == "ann")
        (users / "ann.allow").write_text("lose@prize.example\n")
        (users / "hal.block").unlink()
        assert asked("ann", b"prize.example", SPAM) == b"NBSPAM_SPAM"
        assert asked("hal", b"pool.example") == b"NBSPAM_HAM"
        assert served.said == []
        (users / "ann.allow").write_text("prize\n")
        reply = served.ask(request("CHECK", HAM, user="ann"))
        assert reply.startswith(b"SPAMD/1.0 74 ")
        assert b"ann.allow:1: 'prize' is not a sender" in reply
        (users / "ann.allow").unlink()
        (users / "ann.allow").symlink_to(model)
        assert served.ask(request("CHECK", HAM, user="ann")).startswith(b"SPAMD/1.0 74 ")
        assert asked("hal", b"prize.example", SPAM) == b"NBSPAM_SPAM"


def test_a_list_of_the_server_is_read_again_when_it_changes(serving, model, tmp_path):
    """Also by its workers; a wrong one is reported once, and the lists before it stay."""
    path, blocked = tmp_path / "list", b"NBSPAM_SPAM"
    path.write_text("@shop.example\n")
    senders = SenderLists((), [f"file:{path}"], names=("a", "config.toml: block"))

    def asked(domain):
        return verdict(served, "hal", b"From: win@" + domain + b"\n" + HAM)

    with serving(model, senders=senders) as served:
        assert (asked(b"shop.example"), asked(b"pool.example")) == (blocked, b"NBSPAM_HAM")
        path.write_text("@pool.example  # the other\n")
        assert (asked(b"shop.example"), asked(b"pool.example")) == (b"NBSPAM_HAM", blocked)
        assert served.said == ["a list of senders has changed; the lists were read again"]
        for content in (None, b"pool\n"):
            served.said.clear()
            put(path, content)
            assert [asked(b"pool.example") for _ in range(3)] == [blocked] * 3
            (sentence,) = served.said
            assert str(path) in sentence
            assert sentence.endswith("; the previous lists of senders are still used")
        put(path, b"@shop.example\n")
        assert asked(b"pool.example") == b"NBSPAM_HAM"
    models = Models(ServerConfig(model, senders=senders))
    for content, n in ((b"pool\n", 1), (b"@pool.example\n", 0)):
        put(path, content)
        models.reread()
        assert models.n_unusable == n


def test_a_model_that_is_called_as_a_list_could_be_is_none(serving, model, users):
    with serving(model, users=users / "mail-%u", senders=SenderLists()) as served:
        assert tell(served, "hal.block", SPAM, *AS_SPAM) == LEARNED
        assert verdict(served, "hal", HAM) == b"NBSPAM_HAM"


def test_the_command_gives_users_their_lists_without_any_of_its_own(model, users, monkeypatch):
    setups = []
    run = SimpleNamespace(run=lambda _: None)
    monkeypatch.setattr("nbspam.cli.serve.Server", lambda config, *_: setups.append(config) or run)
    (users / "hal.allow").write_text("@example.org\n")
    serve = ["serve", "-q", "-m", model, "--socket", users / "socket"]
    for options in (["--user-models", users, "--auth-host", "mx"], ["--block", "@b.org"], []):
        assert CliRunner().invoke(nbspam_command, list(map(str, serve + options))).exit_code == 0
    own, lists, none = (config.senders for config in setups)
    assert (own.auth_hosts, none) == (("mx",), None)
    assert lists.find_sender(parse(b"From: a@b.org\n\n")).reason == "blocked sender"
    proof = b"Authentication-Results: mx; spf=pass smtp.mailfrom=example.org\n"
    message = proof + b"From: a@example.org\n"
    models = Models(setups[0])
    for user, reason in (("hal", "allowed sender"), ("ann", None)):
        chosen = models.version_for(user)
        tokenized = tokenize(parse(message + SPAM), outputs=chosen.outputs)
        assert chosen.classify(tokenized).reason == reason


def test_few_models_stay_open(serving, model, users):
    train(users / "user0.json", "xyzzy")
    whole = (users / "user0.json").read_bytes()
    for number in range(1, 12):
        (users / f"user{number}.json").write_bytes(whole)
    with serving(model, users=users, most=5) as served:

        def files():
            return list(Path("/proc/self/fd").iterdir())

        verdict(served, "nobody", mail(b"xyzzy"))  # by the common model, which stays open
        before = len(files())
        for _ in range(2):
            for number in range(12):
                assert verdict(served, f"user{number}", mail(b"xyzzy")) == b"NBSPAM_SPAM"
        wait_until(lambda: len(files()) <= before + 5)  # the last client's socket may still close
    assert served.said == []


def test_users_whose_folder_has_gone_are_not_many(tmp_path):
    """What writes there says what is wrong."""
    (tmp_path / "users").mkdir()
    (tmp_path / "users").chmod(0o755)  # others may look, and write nothing
    files = UserFiles.from_pattern(tmp_path / "users")
    (tmp_path / "users").rmdir()
    assert not files.reached_limit(1)


def teach(served, user, message=SPAM):
    return tell(served, user, message, *AS_SPAM)


@pytest.mark.parametrize("pattern", ["%u.json", "%u/model.json", "of-%u"])
def test_no_more_models_are_made_than_allowed(serving, model, users, pattern):
    (users / ".notes").touch()  # no user has such a name
    with serving(model, users=users / pattern, max_users=2) as served:
        for user in ("a", "b", "a"):
            assert teach(served, user, SPAM + user.encode()).startswith(OK)
        names = sorted(users.rglob("*"))
        reply = teach(served, "c")
        assert reply.startswith(b"SPAMD/1.0 69 Service Unavailable: (2 users have models")
        assert sorted(users.rglob("*")) == names
        assert teach(served, "b", HAM).startswith(OK)
        reply = served.ask(request("SYMBOLS", SPAM, user="c"))
        assert b"NBSPAM_SPAM" in reply  # by the common model
    assert served.said == []


def test_a_folder_is_made_in_no_links_place(users, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (users / "hal").symlink_to(elsewhere)
    files = UserFiles.from_pattern(users / "%u/model.json")
    with pytest.raises(ModelError):
        files.make_folder(files.path("hal"))
    assert not elsewhere.exists()
