"""The classifiers: from tokens to score, for one message and for many.

`Classifier` looks tokens up one message at a time and needs only the standard library;
`BulkClassifier` looks up the tokens of many messages in a table.  Both pass a message's weights to
the same rule, so a score is the same to the last bit.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from nbspam.bayes.event_model import Row
from nbspam.bayes.evidence import separates_classes, trait_feature
from nbspam.scoring.rules import (
    KnownWords,
    ScoringRule,
    SumRule,
    Weights,
    hidden_ham_entries,
    scoring_rule,
)
from nbspam.scoring.verdict import Score
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import (
    CHANNELS,
    HEADER,
    HOST,
    TEXT,
    channels_of,
    collector_of,
    is_domain,
)
from nbspam.tokens.tokenized import NO_EXTRAS, TokenExtras, TokenizedMessage

if TYPE_CHECKING:  # one message is classified without numpy
    from nbspam.store.index import TokenTable

Counts = Mapping[str, Row]
CountLookup = Callable[[Iterable[str]], Counts]  # returns the counts of the known tokens
CACHED_TOKENS = 1_000_000
_CACHED_DOMAINS = 1_000


def dict_lookup(counts: Counts) -> CountLookup:
    """Make a function that finds counts in a mapping."""
    return lambda tokens: {token: counts[token] for token in tokens if token in counts}


_UNKNOWN: tuple[tuple[int, Weights | None], ...] = tuple((c, None) for c in CHANNELS)


class Classifier:
    """Scores messages with one model; caches the weights of tokens."""

    def __init__(
        self,
        metadata: Metadata,
        look_up_counts: CountLookup,
        max_cached: int = CACHED_TOKENS,
        base: tuple[str, Metadata] | None = None,
    ) -> None:
        """look_up_counts: returns the counts of the tokens that the model knows.

        max_cached: about this many tokens' weights are kept for later messages.
        base: the name and metadata of the model's base (`base.py`).
        """
        self.metadata = metadata
        self.rule: ScoringRule = scoring_rule(metadata)
        self.base = base
        self.counts = look_up_counts
        self._max_cached = max_cached
        # Token -> its channel, and its weights if it is known.
        self._words: dict[str, tuple[int, Weights | None]] = {}
        self._weights = functools.cache(self.rule.weights)  # many tokens have the same counts
        # Token of a receiving server -> doubt about its mail; only a few servers receive a user's
        # mail.
        self._doubts: dict[str, float] = {}
        self._domains = metadata.domains

    def _look_up(self, tokens: Set[str]) -> dict[str, tuple[int, Weights | None]]:
        """Return the cache after adding the weights of these tokens.

        Threads share the cache and add to it.  When the cache is full, a new one replaces it, and
        threads that use the old cache finish with it.
        """
        words = self._words
        if tokens <= words.keys():
            return words
        if len(words) + len(tokens) > self._max_cached:  # memory must not grow with the messages
            words = {}
            if len(tokens) <= self._max_cached:  # a huge message would displace all other tokens
                self._words = words
        new = [token for token in tokens if token not in words]
        counts = self.counts(new)
        for token, channel in zip(new, channels_of(new), strict=True):
            row = counts.get(token)
            if row is None:
                words[token] = _UNKNOWN[channel]
                continue
            if channel == HEADER and separates_classes(row, self.metadata.learned.messages):
                channel = HOST
            words[token] = channel, self._weights(row)
        return words

    def known_words(
        self, tokens: Iterable[str], extras: TokenExtras = NO_EXTRAS, left_out: int | None = None
    ) -> KnownWords:
        """Look up the weights of a message's tokens, by channel, and of its traits.

        left_out: the message's class, if the model has learned its traits but not its tokens.
        """
        tokens = set(tokens)
        cached = self._look_up(tokens)
        ignored_hidden = self.hidden_ham_tokens(extras)
        tokens -= ignored_hidden
        groups: tuple[list[Weights], ...] = ([], [], [], [], [], [])
        unknown = channels_of(ignored_hidden).count(TEXT) if ignored_hidden else 0
        words: Iterator[tuple[int, Weights | None]] = map(cached.__getitem__, tokens)
        if extras.times and self.rule.uses_counts:
            times, several = extras.times, ((t, *cached[t]) for t in tokens)
            words = ((c, w and tuple([times.get(t, 1) * x for x in w])) for t, c, w in several)
        for channel, weights in words:
            if weights is not None:
                groups[channel].append(weights)
            elif channel == TEXT:
                unknown += 1
        text, fields, header, opening, host, domain = groups
        host, n_text = host + domain, len(text) + unknown
        traits = self.rule.trait_weights(extras.traits, left_out)
        return KnownWords(text, fields, header, opening, host, n_text, traits)

    def doubt(self, tokens: Iterable[str]) -> float:
        """Return the degree to which a message is from elsewhere, 0 to 1; 0 for a plain text."""
        collector = collector_of(tokens)
        if collector is None:
            return 0.0
        doubts, domains = self._doubts, self._domains
        if not is_domain(collector):
            return domains.doubt_unnamed
        if collector not in doubts:
            if len(doubts) >= _CACHED_DOMAINS:  # as in `_look_up`, threads share the cache
                doubts = self._doubts = {}
            doubts[collector] = domains.doubt(sum(self.counts([collector]).get(collector, ())))
        return doubts[collector]

    def hidden_ham_tokens(self, extras: TokenExtras) -> set[str]:
        """Return the tokens of possibly hidden text that are evidence for ham, to be ignored.

        Returns an empty set if the tokens of that text add up to evidence for spam: such a text
        helps no spammer, and a page whose whole text is doubtful is classified by all of its words.
        The sum rule, which is the textbook's, uses all tokens.
        """
        if not extras.possibly_hidden or not self.rule.distrusts_hidden_text:
            return set()
        cached = self._look_up(extras.possibly_hidden)
        settings = self.metadata.settings
        place = settings.scored_classes.index(settings.positive_index or 0)
        hidden = ((token, cached[token][1]) for token in extras.possibly_hidden)
        nats = {token: weights[place] for token, weights in hidden if weights is not None}
        return set() if sum(nats.values()) > 0 else {t for t, w in nats.items() if w < 0}

    def score(self, tokens: Iterable[str], extras: TokenExtras = NO_EXTRAS) -> Score:
        """Score a message with these tokens and extras."""
        words = self.known_words(tokens, extras)
        if self.metadata.lacks_two_classes:
            n = len(self.metadata.settings.classes)
            return Score(0.0, 0.5, (1 / n,) * n)
        score = self.rule.score(words)
        return score._replace(doubt=self.doubt(tokens)) if self.rule.is_calibrated else score


class BulkClassifier:
    """Scores messages with the table of a model's tokens."""

    def __init__(self, classifier: Classifier, table: "TokenTable") -> None:
        """classifier: gives the same scores, one message at a time.

        table: the tokens of the classifier's model.
        """
        import numpy as np

        from nbspam.bayes.matrix import rank_weights

        self._classifier, self._table = classifier, table
        settings, n = classifier.metadata.settings, len(table.counts)
        # The weights and channels by the table's rows; the last entry, -1, is an unknown token.
        rows = [row for row in map(classifier.rule.weights, table.counts) for _ in CHANNELS]
        rows.append((math.nan,) * len(settings.scored_classes))
        of_rows = np.tile(CHANNELS, (n, 1))
        messages = classifier.metadata.learned.messages
        separating = [i for i, row in enumerate(table.counts) if separates_classes(row, messages)]
        of_rows[separating, HEADER] = HOST
        self._channels = np.append(of_rows, TEXT)
        # The number of learned messages with a token; the last entry is an unknown token.
        self._totals = np.append([sum(counts) for counts in table.counts], 0)
        self._domains = classifier.metadata.domains
        places = range(len(settings.scored_classes))
        columns = [np.array([weights[i] for weights in rows], float) for i in places]
        self._ranked = [rank_weights(column) for column in columns]
        self._for_spam = columns[settings.scored_classes.index(settings.positive_index or 0)]

    def scores(self, messages: Sequence[TokenizedMessage]) -> Iterator[Score]:
        """Yield the score of each message."""
        import numpy as np

        from nbspam.bayes.matrix import doubts_of, evidence_of_rows
        from nbspam.store.index import hash_tokens

        rule = self._classifier.rule
        # The sum rule may count a token's occurrences, which the table does not have.
        if not messages or isinstance(rule, SumRule) or self._classifier.metadata.lacks_two_classes:
            return (self._classifier.score(m.tokens, m.extras) for m in messages)
        tokens = list(itertools.chain.from_iterable(message.tokens for message in messages))
        rows = self._table.find(hash_tokens(tokens))
        n, by_class = len(messages), []
        message_of = np.repeat(np.arange(n), [len(message.tokens) for message in messages])
        if any(message.extras.possibly_hidden for message in messages):
            is_hidden = itertools.chain.from_iterable(map(_are_hidden, messages))
            hidden = np.fromiter(is_hidden, bool, len(tokens))
            rows[hidden_ham_entries(hidden, self._for_spam[rows], message_of, n)] = -1
        channels = self._channels[rows]
        marked = [i for i in np.flatnonzero(rows < 0).tolist() if ":" in tokens[i]]
        channels[marked] = channels_of(tokens[i] for i in marked)
        traits = [rule.trait_weights(message.extras.traits) for message in messages]
        totals = self._totals[rows // len(CHANNELS)]
        doubts = doubts_of(self._domains, channels, totals, message_of, n)
        for i, (ranks, weights) in enumerate(self._ranked):
            features = None
            if self._classifier.metadata.settings.has_traits:
                features = np.array([trait_feature(row[i] for row in w) for w in traits])
            of_rows = evidence_of_rows(message_of, ranks[rows], weights, channels, n)
            by_class.append(of_rows._replace(traits=features, doubts=doubts))
        return rule.scores_of_rows(tuple(by_class))


def _are_hidden(message: TokenizedMessage) -> Iterable[bool]:
    """Return whether each token of a message is in possibly hidden text only."""
    hidden = message.extras.possibly_hidden
    return map(hidden.__contains__, message.tokens) if hidden else [False] * len(message.tokens)
