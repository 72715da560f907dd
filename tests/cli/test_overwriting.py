"""Only a model is ever overwritten: not a mailbox that was named by a slip."""

import pytest
from one_case import each

import nbspam as library
from nbspam.errors import ModelError

MBOX = b"From a@example.org Mon Jan  5 10:00:00 2026\nSubject: lunch\n\nat noon\n"


@pytest.fixture
def mailbox(tmp_path):
    path = tmp_path / "inbox.mbox"
    path.write_bytes(MBOX)
    return path


def assert_kept(found, path, before=MBOX, what="a model"):
    assert found.code == 1
    assert f"{path}: is not {what}, and would be lost; name another file" in found.err
    assert found.err.count("\n") == 1
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".*.new"))


@each("options", [("--replace",), (), ("--replace", "--max-ham-blocked", "1%")])
def test_train(nbspam, table, mailbox, options):
    assert_kept(nbspam("train", "-m", mailbox, *options, table), mailbox)


def test_an_update_the_library_and_a_link_are_no_ways_around(nbspam, table, tmp_path, mailbox):
    found = nbspam("train", "--update", "-m", mailbox, table)
    assert found.code == 1
    assert "is not an nbspam model" in found.err
    with pytest.raises(ModelError, match="is not a model, and would be lost"):
        library.train(table).save(mailbox)
    link = tmp_path / "model.json"
    link.symlink_to(mailbox)
    assert nbspam("train", "-m", link, "--replace", table).code == 1
    assert mailbox.read_bytes() == MBOX


def test_merge_prune_import_and_export(nbspam, table, make_model, tmp_path, mailbox):
    one, two = (make_model(table, "--no-ledger", name=name) for name in ("one.json", "two.json"))
    counts = tmp_path / "counts.csv"
    assert nbspam("model", "export", "-m", one, "--form", "csv", "-o", counts).code == 0
    for arguments in (
        ("merge", one, two, "-o", mailbox),
        ("prune", "-m", one, "--min-count", "2", "-o", mailbox),
        ("import", counts, "-m", mailbox),
    ):
        assert_kept(nbspam("model", *arguments, "--replace"), mailbox)
    for form in ("csv", "bogofilter"):
        again = ("model", "export", "-m", one, "--form", form, "--replace", "-o")
        assert_kept(nbspam(*again, mailbox), mailbox, what="an export")
        assert_kept(nbspam(*again, one), one, one.read_bytes(), what="an export")
        assert nbspam(*again, counts).code == 0  # an export in the other form


def test_what_was_a_model_or_nothing_is_replaced(nbspam, table, model):
    whole = model.read_bytes()
    for spoiled in (
        b"",
        whole[: len(whole) // 2],
        b'{\n  "format": "nbspam-model",\n  "version": 1\n}\n',
        whole.replace(b'"version": 1', b'"version": 9', 1),
    ):
        model.write_bytes(spoiled)
        found = nbspam("train", "-m", model, "--replace", table)
        assert (found.code, found.err) == (0, ""), spoiled[:99]
        assert nbspam("model", "check", "-m", model).code == 0


OUTPUTS = [("--predictions", "w.csv"), ("--report", "w.csv"), ("--plot", "w.svg")]


@pytest.fixture
def labelled(tmp_path, table):
    """Return a function that puts the labelled table at a path."""

    def put(name):
        path = tmp_path / name
        path.write_bytes(table.read_bytes())
        return path

    return put


def assert_refused(found, path, before, what, option):
    assert found.code == 1
    assert found.out == ""
    assert f"nbspam: {option} " in found.err
    assert f": is {what}, and would be lost; name another file\n" in found.err
    assert found.err.count("\n") == 1
    assert path.read_bytes() == before


@each("link", ["", "symbolic", "hard", "other path"])
@each("option, name", OUTPUTS)
def test_eval_keeps_its_sources(nbspam, labelled, option, name, link):
    path = labelled(name)
    folder = path.parent
    before, output = path.read_bytes(), folder / f"link-{name}"
    if link == "symbolic":
        output.symlink_to(path)
    elif link == "hard":
        output.hardlink_to(path)
    else:
        output = folder / ".." / folder.name / name if link else path
    found = nbspam("eval", "--folds", "3", "--input-format", "tsv", path, option, output)
    assert_refused(found, path, before, "a source", option)
    (folder / f"link-{name}").unlink(missing_ok=True)


@each("option, name", [*OUTPUTS[1:], ("--predictions", "w.json")])
@each("protocol", [(), ("--folds", "3")])
def test_eval_keeps_models(nbspam, table, make_model, option, name, protocol):
    path = make_model(table, "--replace", name=name)
    before = path.read_bytes()
    read = () if protocol else ("-m", path)
    found = nbspam("eval", *protocol, *read, table, option, path)
    assert_refused(found, path, before, "a model" if protocol else "the model", option)


def test_eval_keeps_what_a_folder_or_an_index_names(nbspam, tmp_path):
    for label in ("ham", "spam"):
        (tmp_path / "corpus" / label).mkdir(parents=True)
        for n in range(4):
            (tmp_path / "corpus" / label / f"{n}.csv").write_text(f"{label} words {n}\n")
    (tmp_path / "index").write_text("ham corpus/ham/1.csv\nspam corpus/spam/1.csv\n" * 2)
    one = tmp_path / "corpus" / "spam" / "1.csv"
    before = one.read_bytes()
    for source in ("corpus", "index"):
        found = nbspam("eval", "--folds", "2", tmp_path / source, "--predictions", one)
        assert_refused(found, one, before, "a source", "--predictions")


def test_eval_keeps_what_comes_from_standard_input(program, labelled):
    path = labelled("w.csv")
    before = path.read_bytes()
    with path.open("rb") as file:
        found = program("eval", "--folds", "3", "-", "--report", path, stdin=file)
    assert_refused(found, path, before, "a source", "--report")


def test_eval_writes_each_file_by_itself(nbspam, table, tmp_path):
    path = tmp_path / "x.json"
    for _ in range(2):  # before it is there, and then
        found = nbspam("eval", "--folds", "3", table, "--predictions", path, "--report", path)
        assert found.code == 1
        assert "--report" in found.err
        assert "--predictions writes to the same file; name another file" in found.err
        path.touch()


def test_eval_replaces_what_it_wrote_before(nbspam, table, tmp_path):
    outputs = ("--predictions", tmp_path / "p.csv", "--report", tmp_path / "r.html")
    for _ in range(2):
        assert nbspam("eval", "-q", "--folds", "3", table, *outputs).code == 0
