"""Learners by the curvature of the loss, against the same in plain numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

from sksketch.online.curvature.exact_newton import ExactNewton
from sksketch.online.curvature.problem import Problem, SketchOptions
from sksketch.online.curvature.reference import learn_by_loss
from sksketch.online.curvature.sketched_curvature import SketchedCurvature
from sksketch.online.vocabulary import Vocabulary

LOSSES = ["squared", "logistic", "hinge", "absolute", "huber", "softmax"]


def problem_of(loss, *, constant=True, normalize=True, alpha=0.7, outputs=None):
    labels = loss in ("logistic", "hinge", "softmax")
    outputs = outputs or (3 if loss == "softmax" else 1)
    return Problem(loss, outputs, labels, 0.8, constant, normalize, alpha)


def rows_of(seed, n, d, *, density=1.0, raw=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / np.sqrt(d)
    if raw:
        X = X * 10.0 ** rng.uniform(-3, 3, d) + (density == 1.0) * 100 * rng.standard_normal(d)
    X[rng.random((n, d)) >= density] = 0.0
    return X


def targets_of(problem, X, seed):
    rng = np.random.default_rng(seed + 1)
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    Z = ((X - X.mean(axis=0)) / spread) @ rng.standard_normal((X.shape[1], problem.n_outputs))
    Z = Z + 0.5 * rng.standard_normal(Z.shape)
    if problem.loss == "softmax":
        return np.eye(problem.n_outputs)[Z.argmax(axis=1)]
    return np.where(Z > 0, 1.0, -1.0) if problem.labels else Z + 3.0


def numbered(width, problem, *, whole):
    vocabulary = Vocabulary(width, constant=problem.constant)
    if whole:
        vocabulary.restore(np.arange(width))
    return vocabulary


def assert_same(found, learner, vocabulary, run):
    scale = max(1.0, np.abs(run.scores).max())
    np.testing.assert_allclose(found, run.scores, atol=1e-10 * scale, rtol=1e-10)
    assert learner.loss_sum == pytest.approx(run.loss, rel=1e-9)
    W = learner.weights(np.arange(vocabulary.size))
    dense = np.array([vocabulary.dense(w, run.coefficients.shape[1])[0] for w in W.T])
    np.testing.assert_allclose(
        dense, run.coefficients, rtol=1e-7, atol=1e-9 * np.abs(run.coefficients).max()
    )


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_exact_learner_equals_the_reference(loss, constant, normalize):
    problem = problem_of(loss, constant=constant, normalize=normalize)
    X = rows_of(1, 150, 5, raw=normalize)
    Y = targets_of(problem, X, 1)
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 3.0], len(X))
    learner, vocabulary = ExactNewton(5, problem), numbered(5, problem, whole=True)
    found = learner.learn_rows(X, vocabulary, Y, weights)
    run = learn_by_loss(X, Y, problem, sample_weight=weights)
    assert_same(found, learner, vocabulary, run)


@pytest.mark.parametrize("robust", [True, False])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_sketched_learner_equals_the_reference(loss, dense, robust):
    problem, sketch = problem_of(loss), SketchOptions(4, 9, robust)
    X = rows_of(3, 200, 14, density=1.0 if dense else 0.3)
    Y = targets_of(problem, X, 3)
    weights = np.random.default_rng(4).choice([0.0, 1.0, 2.0], len(X))
    learner = SketchedCurvature(sketch, problem, width=14, centers=dense)
    vocabulary = numbered(14, problem, whole=dense)
    rows = X if dense else sp.csr_array(X)
    found = learner.learn_rows(rows, vocabulary, Y, weights)
    run = learn_by_loss(X, Y, problem, sketch, dense=dense, sample_weight=weights)
    assert_same(found, learner, vocabulary, run)


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_without_units_the_ridge_grows_by_half_the_cut(loss):
    problem, sketch = problem_of(loss, normalize=False), SketchOptions(4, 12, True)
    X = rows_of(5, 200, 10, raw=False)
    Y = targets_of(problem, X, 5)
    learner, vocabulary = (
        SketchedCurvature(sketch, problem, width=10),
        numbered(10, problem, whole=False),
    )
    found = learner.learn_rows(X, vocabulary, Y, np.ones(len(X)))
    run = learn_by_loss(X, Y, problem, sketch, dense=False)
    assert_same(found, learner, vocabulary, run)
    assert learner.ridge == pytest.approx(problem.alpha + learner.shrinkage / 2)


def test_a_small_eigenproblem_of_equal_rows_is_solved():
    from sksketch.online.kernels.small_eigen import eigen_inplace

    rows = np.vstack([np.diag([93.0, 30.0]), np.tile([8.0, -0.22], (7, 1))])
    K = rows @ rows.T
    values, V = np.empty(9), np.zeros((9, 12))
    eigen_inplace(np.pad(K, ((0, 0), (0, 3))), V, values, np.empty((4, 12)))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[::-1], atol=1e-11 * values[0])
