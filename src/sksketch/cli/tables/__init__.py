"""Tables on the command line: the choice of columns, their encoding, and what became of them."""
