"""The family of naive Bayes: numbers in, numbers out; nothing here knows mail."""
