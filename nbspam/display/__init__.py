"""Output for people: aligned columns, excerpts with highlights, pages."""
