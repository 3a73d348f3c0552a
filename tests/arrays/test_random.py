import numpy as np

from sksketch.arrays.random import stream


def test_the_same_address_gives_the_same_numbers_in_any_order():
    wanted = [(0, "a", 0), (0, "a", 1), (1, "a", 0), (0, "b", 0), (0, "a", 2**40)]
    once = [stream(*address).standard_normal(5) for address in wanted]
    again = [stream(*address).standard_normal(5) for address in reversed(wanted)][::-1]
    np.testing.assert_array_equal(once, again)


def test_different_addresses_give_unrelated_numbers():
    n = 4000
    addresses = [(s, p, i) for s in (0, 1) for p in ("rows", "probes") for i in (0, 1, 2)]
    draws = np.array([stream(*address).standard_normal(n) for address in addresses])
    correlations = np.corrcoef(draws) - np.eye(len(draws))
    # Five standard errors.
    assert np.abs(correlations).max() < 5 / np.sqrt(n)


def test_a_long_stream_does_not_run_into_the_next_index():
    first = stream(0, "rows", 0).standard_normal(100_000)
    second = stream(0, "rows", 1).standard_normal(100)
    assert not np.isin(second, first).any()


def test_numbers_do_not_change_between_releases():
    # Saved sketches draw their later directions from these.
    drawn = stream(3, "directions", 7).integers(0, 1000, 5).tolist()
    assert drawn == [648, 453, 371, 723, 45]
