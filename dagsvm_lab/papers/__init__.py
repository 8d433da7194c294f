"""The papers: their claims as functions over the recorded tables, and what several notebooks share."""
