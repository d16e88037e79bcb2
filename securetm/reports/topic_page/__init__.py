"""The topics of a run as one HTML page: what is shown (`shown_topics`), the numbers behind it, and the page itself."""
