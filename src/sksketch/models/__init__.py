"""What all estimators share: scikit-learn's contract, rows, callbacks, labels."""
