"""The arithmetic of naive Bayes: from numbers to numbers, without knowledge of mail."""
