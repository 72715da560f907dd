"""The numbers of the rules, as the models that were made with them have them.

Whoever changes one changes which tokens a message has: that is another version of the rules.
"""

import importlib

NUMBERS = {
    "reading.header_fields": {
        "HEADER_LIMIT": 262_144, "HEADERS_LIMIT": 1_000, "PARAMETERS_LIMIT": 16_384,
        "_JUNK_LIMIT": 65_536, "_LATE_LIMIT": 10,
    },
    "reading.message": {
        "BYTES_LIMIT": 16_777_216, "TEXT_LIMIT": 524_288, "DEPTH_LIMIT": 1_000, "PARTS_LIMIT": 200,
        "_WORK_LIMIT": 134_217_728, "_DECODING_WORK": 8, "_DELIMITERS_LIMIT": 10_000,
        "SOURCE_LIMIT": 4_194_304, "_SHEET_LIMIT": 32_768, "_VALUE_LIMIT": 300, "_PIECES": 16,
        "_EDGE": 200,
    },
    "reading.charsets": {"_PIECES_LIMIT": 50_000, "_UU_LINES_LIMIT": 100_000},
    "tokens.headers": {
        "_FIELD_LIMIT": 4_000, "_CHANNEL_LIMIT": 16_000, "_TOKENS_LIMIT": 1_000, "_NAME_LIMIT": 30,
        "_DIGITS_LIMIT": 4, "_HOST_LIMIT": 80, "_RECEIVED_LIMIT": 1_000,
    },
    "tokens.html": {"_FEW_WORDS": 5, "_FEW_COLOURS": 8},
    "tokens.styles": {
        "_SAME": 48, "_CLEAR": 0.1, "_PALE": 0.5, "_FEW": 4,
        "_RULES_LIMIT": 2_000,
    },
    "tokens.text": {"WORD_LIMIT": 30, "SHORT": 400},
    "tokens.tokenized": {"RULES": 6, "TOKENS_LIMIT": 20_000, "_SAME": 0.8, "_DIGEST_BYTES": 16},
    "tokens.kinds": {"STEPS": 8, "MOST": 99},
}  # fmt: skip


def test_the_numbers_of_the_rules_are_those_of_the_models_in_use():
    for name, numbers in NUMBERS.items():
        module = importlib.import_module(f"nbspam.{name}")
        assert {number: getattr(module, number) for number in numbers} == numbers, name
