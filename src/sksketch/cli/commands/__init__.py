"""The commands, one file each where they share no code."""
