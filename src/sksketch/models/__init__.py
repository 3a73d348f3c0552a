"""The base of all estimators: scikit-learn's contract, rows, callbacks, labels."""
