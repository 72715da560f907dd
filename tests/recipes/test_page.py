from pathlib import Path

from page import changes, recipes

HERE = Path(__file__).parent


def test_every_recipe_is_run_by_a_test():
    tests = "".join(path.read_text() for path in HERE.glob("*.py"))
    assert [name for name in recipes() if f'"{name}"' not in tests] == []


def test_every_command_of_the_table_is_run_by_a_test():
    tests = (HERE / "test_switching.py").read_text()
    assert [what for what in changes() if f'"{what}"' not in tests] == []
