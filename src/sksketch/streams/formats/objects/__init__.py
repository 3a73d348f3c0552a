"""Rows that objects of other libraries, pairs and dicts give."""
