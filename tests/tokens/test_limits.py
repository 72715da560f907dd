"""The numbers of the rules, as the models that were made with them have them.

Whoever changes one changes which tokens a message has: that is another version of the rules.
"""

import importlib
from ast import literal_eval

from golden_tables import golden_table
from one_case import each


@each("module, name, value", golden_table("tokens/numbers.table", 3))
def test_the_numbers_of_the_rules_are_those_of_the_models_in_use(module, name, value):
    assert getattr(importlib.import_module(f"nbspam.{module}"), name) == literal_eval(value)
