from pathlib import Path

import pytest

from nbspam.cli.manual import files

FILES = files(Path(__file__).parents[2])


@pytest.mark.parametrize(("path", "text"), FILES.items(), ids=[path.name for path in FILES])
def test_what_is_written_from_the_declarations_is_up_to_date(path, text):
    # Other versions of click break lines elsewhere.
    assert text.split() == path.read_text("utf-8").split(), (
        "write it again: python -m nbspam.cli.manual"
    )
