"""What people look at: columns that line up, excerpts with highlights, pages."""
