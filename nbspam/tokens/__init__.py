"""A message in, its tokens and numbers out."""
