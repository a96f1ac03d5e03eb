"""A failure matrix: a catalogue of states, proved on a live PostgreSQL and published."""
