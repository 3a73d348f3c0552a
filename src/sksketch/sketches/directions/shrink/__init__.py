"""The shrink of Frequent Directions: rules, operands, solvers and read-outs."""
