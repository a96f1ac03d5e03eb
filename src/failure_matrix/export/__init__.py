"""What a catalogue says, in the words of other tools."""
