"""In which other forms can a run be written? As LaTeX tables for papers, as JSON lines for other
programs, and as a leaderboard of several runs."""
