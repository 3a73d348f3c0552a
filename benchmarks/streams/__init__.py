"""Progressive error of online learners at their defaults, beside Vowpal Wabbit, River and SGD."""
