"""Linear sketches S A, for a random S, and the sums behind them."""
