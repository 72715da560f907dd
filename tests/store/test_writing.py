import errno
import fcntl
import os
import pwd
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from itertools import product
from pathlib import Path

import pytest
from small_models import assert_one_sentence, refused

from nbspam.errors import LockedError, ModelError
from nbspam.store import writing
from nbspam.store.writing import DEFAULT_WAIT, QUIET_WAIT, LockWait, locked, write_atomically


def put(path, text: bytes):
    with locked(path) as place:
        write_atomically(place, lambda file: file.write(text))


def failing(number):
    """Return what fails for a reason of the system's."""

    def fail(*_):
        raise OSError(number, os.strerror(number))

    return fail


def names_in(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    put(path, b"old")
    return path


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def lock_of(model):
    return model.with_name(f".{model.name}.lock")


def test_a_file_is_made_and_replaced_and_its_lock_stays(model):
    assert model.read_bytes() == b"old"
    before = lock_of(model).stat()
    with model.open("rb") as file:
        put(model, b"new")
        assert file.read() == b"old"  # a reader keeps the old file
    assert model.read_bytes() == b"new"
    assert before.st_ino == lock_of(model).stat().st_ino
    assert (mode_of(lock_of(model)), mode_of(model)) == (0o600, 0o600)
    assert names_in(model.parent) == ["model.json"]


def test_a_copy_that_is_made_during_saves_is_whole(model):
    """Opened once and read in pieces, as by `cp`: a backup needs no lock (docs/model-file.md)."""
    size, done = 1 << 20, threading.Event()

    def save():
        while not done.is_set():
            for content in (b"a", b"b"):
                put(model, content * size)

    put(model, b"a" * size)
    saving = threading.Thread(target=save)
    saving.start()
    try:
        for _ in range(30):
            with model.open("rb", buffering=0) as file:
                copied = b"".join(iter(lambda file=file: file.read(1 << 17), b""))
            assert copied == copied[:1] * size
    finally:
        done.set()
        saving.join(20)


def test_the_second_writer_waits_for_the_first(model):
    done = []
    with locked(model):
        other = threading.Thread(target=lambda: (put(model, b"second"), done.append(True)))
        other.start()
        other.join(0.1)
        assert not done
        write_atomically(model, lambda file: file.write(b"first"))
    other.join(10)
    assert done
    assert model.read_bytes() == b"second"


def test_a_lock_is_free_again_after_a_failure(model):
    with pytest.raises(ZeroDivisionError), locked(model):
        1 / 0  # noqa: B018
    with lock_of(model).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_a_killed_writer_left_is_cleared_away(model):
    left = model.with_name(".model.json.new")
    code = (
        "import os, sys, signal; from pathlib import Path\n"
        "from nbspam.store.writing import locked, write_atomically\n"
        "def write(file):\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "with locked(Path(sys.argv[1])) as place: write_atomically(place, write)"
    )
    done = subprocess.run([sys.executable, "-c", code, model], check=False)
    assert done.returncode == -signal.SIGKILL
    assert left.read_bytes() == b"half"
    assert model.read_bytes() == b"old"
    put(model, b"new")
    assert names_in(model.parent) == ["model.json"]


def test_without_a_lock_the_next_writer_clears_away_what_ended_writers_left(tmp_path):
    table, ended = tmp_path / "table.csv", subprocess.Popen(["true"])
    ended.wait()
    kept = [f".table.csv.{os.getppid()}.new", ".table.csv.x.new", f".other.csv.{ended.pid}.new"]
    for name in (*kept, f".table.csv.{ended.pid}.new", f".table.csv.{10**30}.new"):
        (tmp_path / name).touch()
    with writing.atomic_replacement(table, "file", str(os.getpid())) as file:
        file.write(b"new")
    assert names_in(tmp_path) == sorted([*kept, "table.csv"])


def test_what_was_left_is_not_followed(model, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    model.with_name(".model.json.new").symlink_to(other)
    put(model, b"new")
    assert other.read_bytes() == b"precious"
    assert model.read_bytes() == b"new"
    assert not model.is_symlink()


def test_a_new_file_is_nobody_elses_from_the_beginning(model, monkeypatch):
    """Neither one that comes in its place at the last moment, nor for others to read."""
    modes, chmod, unlink = [], os.fchmod, Path.unlink
    monkeypatch.setattr(os, "fchmod", lambda h, m: (modes.append(os.fstat(h).st_mode), chmod(h, m)))
    before = os.umask(0)
    put(model, b"new")
    os.umask(before)
    assert stat.S_IMODE(modes[0]) == 0o600
    new, planted = model.with_name(".model.json.new"), model.with_name("planted")

    def late(path, missing_ok=False):
        unlink(path, missing_ok=missing_ok)
        planted.hardlink_to(model) if not planted.exists() else None
        if path == new:
            path.symlink_to(planted)

    monkeypatch.setattr(Path, "unlink", late)
    with pytest.raises(ModelError, match="File exists"):
        put(model, b"newer")
    assert planted.read_bytes() == b"new"


# Links


def test_a_link_keeps_pointing_at_the_model(model, tmp_path):
    (tmp_path / "sub").mkdir()
    link = tmp_path / "sub" / "link"
    link.symlink_to("../model.json")
    put(link, b"new")
    assert link.is_symlink()
    assert model.read_bytes() == b"new"
    assert names_in(tmp_path / "sub") == ["link"]
    assert list((tmp_path / "sub").iterdir()) == [link]  # one lock for both names


def test_a_link_that_leads_nowhere_gets_a_model_there_and_a_circle_stays(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.symlink_to("model.json")
    put(one, b"new")
    assert one.is_symlink()
    assert (tmp_path / "model.json").read_bytes() == b"new"
    one.unlink()
    one.symlink_to(two)
    two.symlink_to(one)
    with refused(one, "Too many levels of symbolic links"):
        put(one, b"new")
    assert one.is_symlink()
    assert two.is_symlink()
    assert names_in(tmp_path) == ["model.json", "one", "two"]


# What cannot be locked or written


def test_a_place_that_no_file_can_have_is_named(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path, "folder"),
        (model / "model.json", "Not a directory"),
        (tmp_path / "pipe", "is not a regular file"),
        (tmp_path / ("x" * 254), "File name too long"),
        (tmp_path / "none" / "model.json", "; make its folder, or name another file"),
    ):
        with refused(path, said) as error:
            put(path, b"new")
    assert str(error.value).endswith(said)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert model.read_bytes() == b"old"


def test_a_lock_that_is_none_is_named(model, monkeypatch):
    lock, new = lock_of(model), model.with_name(".model.json.new")
    for make, *said in (
        (
            lambda: monkeypatch.setattr(fcntl, "flock", failing(errno.ENOLCK)),
            "No locks available",
            "unchanged",
        ),
        (lambda: (monkeypatch.undo(), new.mkdir()), "Is a directory", "unchanged"),
        (lambda: (lock.unlink(), lock.mkdir()), str(lock), "cannot be locked"),
        (lambda: (lock.rmdir(), lock.symlink_to("model.json")), str(lock), "cannot be locked"),
    ):
        make()
        with refused(model, *said):
            put(model, b"new")
        assert model.read_bytes() == b"old"


REMEDIES = {
    errno.ENOSPC: "; free some space on its disk, and run it again",
    errno.EDQUOT: "; free some space on its disk, and run it again",
    errno.EFBIG: "; raise the limit on the size of files (ulimit -f), and run it again",
    errno.EROFS: "; its disk is mounted read-only: name a file on another",
    errno.EACCES: " and has mode 0700; run it as a user who can write there",
    errno.EIO: "; fix that, and run it again",
}


def test_each_reason_has_its_own_remedy(model):
    model.parent.chmod(0o700)
    for number, remedy in REMEDIES.items():
        with refused(model, os.strerror(number), "unchanged") as error, locked(model) as place:
            write_atomically(place, failing(number))
        assert str(error.value).endswith(remedy)
        assert model.read_bytes() == b"old"


def test_the_file_is_on_the_disk_before_it_has_the_name(model, monkeypatch):
    """A disk that cannot sync a folder is no hindrance."""
    seen, sync, new = [], os.fsync, model.with_name(".model.json.new")

    def note(handle):
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        seen.append((is_folder, model.read_bytes(), new.exists() and new.read_bytes()))
        if is_folder:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        sync(handle)

    monkeypatch.setattr(os, "fsync", note)
    put(model, b"new")
    assert seen == [(False, b"old", b"new"), (True, b"new", False)]
    assert model.read_bytes() == b"new"


# Who may read and write it


def test_the_mode_of_what_was_there_stays(model):
    for mode, mask in product([0o600, 0o640, 0o644, 0o664, 0o400], [0o777, 0o077, 0o000]):
        model.chmod(mode)
        put_under(mask, model)
        assert (mode_of(model), model.read_bytes()) == (mode, b"%o" % mask)
        assert mode_of(lock_of(model)) == 0o600
    model.chmod(0o6755)  # bits that run a file as another do not stay
    put(model, b"new")
    assert mode_of(model) == 0o755


def put_under(mask, path):
    before = os.umask(mask)
    try:
        put(path, b"%o" % mask)
    finally:
        os.umask(before)


def test_a_new_model_is_its_owners_to_read_whatever_the_umask(tmp_path):
    for mask in (0o777, 0o277, 0o000):
        put_under(mask, path := tmp_path / f"{mask}.json")
        assert (mode_of(path), mode_of(lock_of(path))) == (0o600, 0o600)


def test_a_file_is_the_owners_alone_until_it_is_whole_and_a_mode_given_meanwhile_stays(model):
    seen = []

    def write(file):
        seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        model.chmod(0o640)

    model.chmod(0o644)
    with locked(model) as place:
        write_atomically(place, write)
    assert (seen, mode_of(model)) == ([0o600], 0o640)


def written_by(uid, gid, path, groups=()):
    """Write the file as another user, in a process of its own."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from nbspam.store.writing import locked, write_atomically\n"
        f"os.setgroups({list(groups)}); os.setgid({gid}); os.setuid({uid})\n"
        "with locked(Path('model.json')) as place:\n"
        "    write_atomically(place, lambda file: file.write(b'new'))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=path.parent, check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another")
def test_who_is_not_in_the_group_does_not_open_the_file_to_another():
    """The bits of the model's group are not for the group of whoever writes."""
    for writer, groups, mode, group in (
        (1235, [], 0o640, 1235),
        (77, [1235], 0o640, 1235),
        (77, [], 0o600, 77),
    ):
        with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
            model = Path(folder, "model.json")
            model.write_bytes(b"old")
            os.chown(model, 1234, 1235)
            model.chmod(0o640)
            model.parent.chmod(0o777)
            written_by(4321, writer, model, groups)
            assert model.read_bytes() == b"new"
            assert (mode_of(model), model.stat().st_gid) == (mode, group)


def access_list(*entries):
    """Return an access control list as Linux has it: (tag, permissions, number) each."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xFFFFFFFF
OWNER, USER, GROUP, MASK, OTHERS = 1, 2, 4, 16, 32  # tags
BOB_READS = access_list(
    (OWNER, 6, NOBODY), (USER, 4, 4321), (GROUP, 0, NOBODY), (MASK, 4, NOBODY), (OTHERS, 0, NOBODY)
)


def put_list(path, name, content):
    try:
        os.setxattr(path, f"system.posix_acl_{name}", content)
    except (OSError, AttributeError):
        pytest.skip("this disk has no access control lists")


def test_an_access_control_list_stays_or_the_file_is_open_to_nobody(model, monkeypatch):
    put_list(model, "access", BOB_READS)
    put(model, b"new")
    assert os.getxattr(model, "system.posix_acl_access") == BOB_READS
    assert mode_of(model) == 0o640  # its mask looks like bits of the group, which may not read

    monkeypatch.setattr(os, "setxattr", failing(errno.EPERM))
    put(model, b"new")
    assert mode_of(model) == 0o600


def test_the_folders_list_opens_no_file_that_had_none(model):
    model.chmod(0o640)
    put_list(model.parent, "default", BOB_READS)
    put(model, b"new")
    with pytest.raises(OSError, match="No data"):
        os.getxattr(model, "system.posix_acl_access")
    assert mode_of(model) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_roots_update_leaves_a_users_model_the_users_and_other_files_root(tmp_path):
    for there in (True, False):
        folder = tmp_path / f"home{there}"
        folder.mkdir()
        path = folder / "model.json"
        if there:
            path.write_bytes(b"old")
            path.chmod(0o600)
        os.chown(path if there else folder, 1234, 1235)
        put(path, b"new")
        for each in (path, lock_of(path)):
            owner = each.stat()
            assert (owner.st_uid, owner.st_gid, mode_of(each)) == (1234, 1235, 0o600)
    other = tmp_path / "precious"
    other.write_bytes(b"")
    lock_of(path).unlink()
    os.link(other, lock_of(path))  # a lock that was there is not given away
    put(path, b"new")
    assert other.stat().st_uid == 0


def test_a_failure_that_leaves_no_model_leaves_no_lock(tmp_path):
    path = tmp_path / "new.json"
    with pytest.raises(ZeroDivisionError), locked(path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_who_waits_for_a_lock_that_is_removed_takes_a_new_one(tmp_path):
    """The one that waits must not go on with a lock that a third one does not see."""
    path, order = tmp_path / "new.json", []
    begun = threading.Event()

    def wait():
        begun.set()
        with locked(path) as place:
            order.append(place.with_name(".new.json.lock").exists())

    waiting = threading.Thread(target=wait)
    with pytest.raises(ZeroDivisionError), locked(path):
        waiting.start()
        begun.wait(5)
        time.sleep(0.2)
        assert order == []
        raise ZeroDivisionError
    waiting.join(5)
    assert order == [True]
    assert list(tmp_path.iterdir()) == []


# A lock that another holds: waited for, told of, and given up.


def test_a_long_wait_is_told_once_and_given_up(model, monkeypatch):
    monkeypatch.setattr(writing, "WARN_AFTER", 0.1)
    said, lock = [], lock_of(model)
    with (
        locked(model),
        pytest.raises(LockedError) as error,
        locked(model, LockWait(limit=0.3, on_note=said.append)),
    ):
        pytest.fail("it is not ours")
    assert said == [f"{model}: waiting for its lock {lock}, held by another program"]
    assert_one_sentence(error, model, "it belongs to ", f"fuser {lock}", "nothing was changed")
    assert error.value.exit_code == 75
    with locked(model, LockWait(0)):  # the first attempt is always made
        pass


def test_a_short_wait_is_not_told(model):
    said, done = [], []

    def wait():
        with locked(model, LockWait(on_note=said.append)):
            done.append(True)

    with locked(model):
        other = threading.Thread(target=wait)
        other.start()
        time.sleep(0.05)
    other.join(10)
    assert (said, done) == ([], [True])


def test_it_is_given_up_when_the_waiter_is_told_to(model):
    over = threading.Event()
    threading.Timer(0.05, over.set).start()
    with (
        locked(model),
        pytest.raises(LockedError),
        locked(model, LockWait(should_stop=over.is_set)),
    ):
        pytest.fail("it is not ours")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_strangers_lock_that_cannot_be_opened_is_told(model, monkeypatch):
    lock = lock_of(model)
    lock.touch(0o600)
    os.chown(lock, 4321, 4321)
    real = os.open

    def refuse(path, flags, *mode):  # root may open everything
        if path == lock and not flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *mode)

    monkeypatch.setattr(writing.os, "open", refuse)
    with pytest.raises(ModelError) as error:
        locked(model).__enter__()
    monkeypatch.undo()
    assert_one_sentence(error, model, "Permission denied", "it belongs to number 4321")


def test_by_default_a_wait_is_logged(model, caplog, monkeypatch):
    monkeypatch.setattr(writing, "WARN_AFTER", 0.05)
    with locked(model):
        waiter = threading.Thread(target=lambda: locked(model).__enter__())
        waiter.start()
        ends = time.monotonic() + 30
        while "waiting" not in caplog.text and time.monotonic() < ends:
            time.sleep(0.01)
    waiter.join(30)
    assert "waiting for its lock" in caplog.text
    assert DEFAULT_WAIT.limit == QUIET_WAIT.limit == 300
    caplog.clear()
    QUIET_WAIT.on_note("x")
    assert caplog.text == ""


def test_a_lock_of_the_models_owner_is_told_to_whoever_else_wants_it(model, monkeypatch):
    """As a reader of a shared model gets it who tries to teach it."""
    opened = os.open

    def refuse(path, flags, *mode):
        if not flags & os.O_EXCL:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, flags, *mode)

    lock_of(model).touch()
    owner = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(ModelError) as error, locked(model):
        pytest.fail("it is not ours")
    said = f"it belongs to {owner} and has mode "
    assert_one_sentence(error, model, str(lock_of(model)), "Permission denied", said)


# What a failed or hostile write must not do: each test fails without the protection.


def test_a_link_in_the_locks_place_is_not_followed(tmp_path, monkeypatch):
    """Else a stranger's link would have another file opened, and locked."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".model.json.lock").symlink_to(victim)
    monkeypatch.setattr("os.path.samestat", lambda *_: True)  # it would find the link later
    with pytest.raises(ModelError, match="cannot be locked"), locked(tmp_path / "model.json"):
        pass
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError(), SystemExit()],
)
@pytest.mark.parametrize("place", ["write", "fsync", "rename"])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, error, place):
    model = tmp_path / "model.json"
    model.write_bytes(b"old")

    def fail(*_):
        raise error

    if place == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif place == "rename":
        monkeypatch.setattr("pathlib.Path.replace", fail)
    write = fail if place == "write" else lambda file: file.write(b"new")
    is_ours = isinstance(error, OSError)
    with pytest.raises(ModelError if is_ours else type(error)) as found:
        write_atomically(model, write)
    if is_ours:
        assert_one_sentence(found, model, "No space left on device")
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    assert model.read_bytes() == b"old"
