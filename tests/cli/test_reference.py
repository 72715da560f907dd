import pytest

from nbspam.cli.manual import files


@pytest.mark.parametrize(("path", "text"), files().items(), ids=[path.name for path in files()])
def test_what_is_written_from_the_declarations_is_up_to_date(path, text):
    # Other versions of click break lines elsewhere.
    assert text.split() == path.read_text("utf-8").split(), (
        "write it again: python -m nbspam.cli.manual"
    )
