"""What is learned of the traits: how many messages of each class have each value."""

from collections.abc import Mapping, Sequence

Values = Mapping[int, int]  # value of a trait -> how many messages have it, above 0
Histograms = Sequence[Sequence[Values]]  # per trait, per class
