"""A message in, its set of tokens out."""
