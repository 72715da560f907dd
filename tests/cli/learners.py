"""Processes that learn and classify at once, for the tests of concurrency: run with its role.

    python learners.py learn MODEL FIRST LAST [FIRST LAST]...   one message at a time
    python learners.py forget MODEL FIRST LAST                  the same
    python learners.py classify MODEL                           until its standard input is closed
    python learners.py killed MODEL TIMES SEED                  learners killed while they save

Messages go by their numbers; every third is spam.
"""

import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from nbspam.errors import ModelError
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import PendingMessages, forget, learn
from nbspam.reading.message import parse
from nbspam.scoring.classifier import Classifier
from nbspam.store.lookup import Lookup, read_model
from nbspam.tokens.tokenized import TokenizedMessage, tokenize

WANTED = TrainingSettings().outputs
WORDS = "lunch noon meeting notes free prize click win cash tea shop week train desk".split()


def label_of(number: int) -> str:
    return "ham" if number % 3 else "spam"


def mail(number: int) -> bytes:
    chosen = random.Random(number).sample(WORDS, 5)
    return (
        f"From: sender{number % 5}@example.org\nMessage-ID: <{number}@example.org>\n"
        f"Subject: {chosen[0]} {chosen[1]}\n\n{' '.join(chosen[2:])} no{number}\n"
    ).encode()


def lesson(number: int) -> TokenizedMessage:
    return tokenize(parse(mail(number)), label=label_of(number), digest=True, outputs=WANTED)


def learn_one(model: Path, number: int) -> None:
    found = PendingMessages(WANTED)
    found.add([lesson(number)], model)
    learn(model, found, TrainingSettings())


def forget_one(model: Path, number: int) -> None:
    forget(model, [lesson(number)._replace(label=None)])


def classify_on(model: Path) -> None:
    """Classify until standard input is closed; print how often, and how many models were seen."""
    print("begins", flush=True)
    chance = random.Random(os.getpid())
    done, seen = 0, set()
    while not done or not select.select([sys.stdin], [], [], 0)[0]:
        was_there = model.exists()
        try:
            with Lookup(model) as lookup:
                classifier = Classifier(lookup.metadata, lookup.counts)
                message = lesson(chance.randrange(1_000))
                score = classifier.score(message.tokens, message.extras)
                seen.add(lookup.metadata.learned.messages)
        except ModelError:
            if was_there:
                raise
            continue  # it has not been made yet
        assert 0 <= score.probability <= 1
        done += 1
    print(done, len(seen))


def killed(model: Path, times: int, chance: random.Random) -> None:
    """Kill learners while they save; print how often a half-written file was left."""
    left = 0
    lasts = 0.01  # a save, in seconds
    for n in range(times):
        child = os.fork()
        if not child:
            for i in range(1_000):
                number = 10_000 + 1_000 * n + i
                learn_one(model, number)
                forget_one(model, number)
            os._exit(0)
        time.sleep(chance.uniform(0, 4 * lasts))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left += model.with_name(f".{model.name}.new").exists()
        found = read_model(model)
        assert len(found.counts) == found.metadata.n_tokens
        assert sum(map(sum, found.learned.values())) == sum(found.metadata.learned.messages)
        started = time.monotonic()
        learn_one(model, 1_000 + n)
        lasts = time.monotonic() - started
        assert not model.with_name(f".{model.name}.new").exists()
        assert lesson(1_000 + n).digest in read_model(model).learned
    print(left)


def main() -> None:
    role, model, *rest = sys.argv[1:]
    path = Path(model)
    if role == "classify":
        classify_on(path)
    elif role == "killed":
        killed(path, int(rest[0]), random.Random(int(rest[1])))
    else:
        numbers = [int(text) for text in rest]
        for first, last in zip(numbers[::2], numbers[1::2], strict=True):
            for number in range(first, last):
                (learn_one if role == "learn" else forget_one)(path, number)


if __name__ == "__main__":
    main()
