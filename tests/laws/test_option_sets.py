"""The laws are applied to every sketch, and their options run what they are meant to run."""

import itertools

import numpy as np

from _support import laws, pairwise


def test_every_sketch_has_laws():
    # A new subclass of Sketch must be added to laws.SKETCHES.
    covered = {type(make()) for make in laws.SKETCHES.values()}
    library = {kind for kind in laws.concrete_classes() if kind.__module__.startswith("sksketch")}
    assert library
    assert library <= covered


def test_block_routes_of_the_laws_do_run_the_block_solver():
    # 60 rows of buffer are more than 4 sketch sizes, so shrinks of full buffers are block shrinks.
    sketch = laws.fd(laws.BLOCK).update(np.random.default_rng(0).standard_normal((200, 30)))
    assert sketch.n_shrinks >= 3
    assert sketch.summary().confidence < 1


def test_the_pairwise_set_has_every_sketch_and_every_two_choices():
    kinds = {type(make()) for make in pairwise.SKETCHES.values()}
    assert kinds == {type(make()) for make in laws.SKETCHES.values()}
    rows = pairwise.covering(list(pairwise.CHOICES.values()))
    for (i, one), (j, two) in itertools.combinations(enumerate(pairwise.CHOICES.values()), 2):
        assert {(row[i], row[j]) for row in rows} == set(itertools.product(one, two))
