"""The experiments of the papers, a folder each."""
