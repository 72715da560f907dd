"""Bernoulli naive Bayes: arrays and numbers in, arrays and numbers out; nothing here knows mail."""
