"""Text: sentences, tokens, chunks and word overlap."""
