"""FActScore (Min et al. 2023): the share of a text's atomic facts that a knowledge source supports."""
