"""Three views of a hidden class: its weights and the mean embedding of each view given it.

The rows x1, x2, x3 of a triple are independent given a class h in 1..k. With psi the features
of a kernel, let A_a have the columns E[psi(x_a) | h]. Then E[psi(x_a) psi(x_b)'] = A_a W A_b'
for a != b, with W the diagonal matrix of weights, and the third moment has the same factors
(Anandkumar et al. 2014; Song et al. 2014; Xie, Liang and Song 2015, section 5).

Everything is read from k coordinates z_a = B_a' psi(x_a) of each view, by their moments. Any
bases B_a will do for which B_a' A_a is regular; those that are found here span A_a, so that
the moments are as far from noise as they can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from sksketch._typing import Array, Rows
from sksketch.arrays.namespace import like, namespace, to_numpy
from sksketch.arrays.random import stream
from sksketch.arrays.subspace import orthonormal
from sksketch.kernel_methods.feature_blocks import FeatureBlocks
from sksketch.kernel_methods.feature_maps import FeatureMap
from sksketch.kernel_methods.latent.tensor_power import symmetrized, tensor_power

# More directions than classes are followed until the last pass.
OVERSAMPLING = 8
# Rows of the pilot, and products with them.
PILOT_ROWS = 20_000
PILOT_PASSES = 4
# Features of a block of triples may take this many bytes.
BLOCK_BYTES = 1 << 26


class Triple(NamedTuple):
    """Three arrays of rows, or whatever else there is one of for each view."""

    first: Any
    second: Any
    third: Any


@dataclass(frozen=True)
class Moments:
    """Moments of coordinates: ``pairs[a, b]`` = E[z_a z_b'] and ``triples`` = E[z_1 z_2 z_3]."""

    pairs: dict[tuple[int, int], Array]
    triples: Array

    def shared(self) -> Moments:
        """Return the moments averaged over all orders of the views."""
        orders = list(permutations(range(3), 2))
        both: Array = np.mean([self.pairs[order] for order in orders], axis=0)
        return Moments(dict.fromkeys(orders, both), symmetrized(self.triples))


@dataclass(frozen=True)
class Mixture:
    """Read-out of the moments: weights, and the coordinates of each view's conditional means.

    ``weights`` are lam_h^-2 of the tensor's values and need not sum to 1. ``means[a]`` has
    E[z_a | h] in column h. ``singular_values`` are those of the pair moments, of the worst
    pair of views.
    """

    weights: Array
    means: Triple
    singular_values: Array


# Bases


def find_bases(
    features: Triple, views: Triple, k: int, seed: int, *, shared: bool, n_passes: int
) -> Triple:
    """Return k orthonormal columns for each view that span its conditional means.

    Subspace iteration: the image E[psi(x_a) (B_b' psi(x_b))'] of a basis of another view has
    the span wanted, but for noise. ``n_passes`` over all rows follow some over a pilot. With
    ``shared`` conditionals all views have one basis. `block_krylov` is not for this: estimated
    pair moments have eigenvalues of noise of both signs.
    """
    n = views[0].shape[0]
    chosen = np.sort(stream(seed, "pilot").choice(n, min(n, PILOT_ROWS), replace=False))
    pilot = Triple(*(X[like(chosen, X)] for X in views))
    width = k + OVERSAMPLING
    bases = Triple(*(_start(f, X, width, seed) for f, X in zip(features, views, strict=True)))
    for rows, passes in ((pilot, PILOT_PASSES), (views, n_passes)):
        for _ in range(passes):
            images = _images(features, rows, bases, shared)
            bases = Triple(*(orthonormal(image)[:, :width] for image in images))
    least = min(B.shape[1] for B in bases)
    if least < k:
        raise np.linalg.LinAlgError(f"they have {least} directions")
    return Triple(*(B[:, :k] for B in bases))


def _start(features: FeatureMap, X: Rows, width: int, seed: int) -> Any:
    n_columns = features.n_columns
    values = stream(seed, "directions").standard_normal((n_columns, min(width, n_columns)))
    return orthonormal(like(values, X))


def _images(features: Triple, views: Triple, bases: Triple, shared: bool) -> Triple:
    """Return sums of psi(x_a) times the coordinates of the other views, side by side.

    With ``shared`` conditionals they are added up, over the views as well.
    """
    xp = namespace(views[0])
    images: list[Any] = [0.0, 0.0, 0.0]
    for rows in blocks_of(features, views):
        blocks = [
            FeatureBlocks(f, X[rows], 0, f.n_columns) for f, X in zip(features, views, strict=True)
        ]
        Z = [part.times(B) for part, B in zip(blocks, bases, strict=True)]
        for a in range(3):
            others = [Z[b] for b in range(3) if b != a]
            H = others[0] + others[1] if shared else xp.concat(others, axis=1)
            images[a] = images[a] + blocks[a].transposed_times(H)[0]
    return Triple(*([sum(images)] * 3 if shared else images))


def coordinates(features: FeatureMap, X: Rows, basis: Rows) -> Any:
    """Return B' psi(x) for all rows, in float64."""
    return features.evaluate(X, basis) * features.n_columns**-0.5


def blocks_of(features: Triple, views: Triple) -> Any:
    """Yield slices of rows whose features take some memory only."""
    n, width = views[0].shape[0], sum(f.n_columns for f in features)
    step = max(256, BLOCK_BYTES // (8 * width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


# Moments


def find_moments(features: Triple, views: Triple, bases: Triple) -> Moments:
    """Return the moments of all triples, in one pass."""
    k, n = bases[0].shape[1], views[0].shape[0]
    pairs = {(a, b): np.zeros((k, k)) for a, b in ((0, 1), (0, 2), (1, 2))}
    triples = np.zeros((k * k, k))
    for rows in blocks_of(features, views):
        Z = [coordinates(f, X[rows], B) for f, X, B in zip(features, views, bases, strict=True)]
        for a, b in pairs:
            pairs[a, b] += to_numpy(Z[a].T @ Z[b])
        outer = Z[0][:, :, None] * Z[1][:, None, :]
        triples += to_numpy(outer.reshape((-1, k * k)).T @ Z[2])
    both = {ab: C / n for ab, C in pairs.items()}
    both |= {(b, a): C.T for (a, b), C in both.items()}
    return Moments(both, triples.reshape((k, k, k)) / n)


def solve(moments: Moments, seed: int, *, shared: bool) -> Mixture:
    """Return weights and conditional means, largest weight first.

    Views 1 and 2 are mapped to view 3 by C_32 C_12^-1 and C_31 C_21^-1; these are the identity
    where the conditionals are ``shared``, and so all moments. The tensor is whitened by the
    pair moment there, which makes its vectors orthogonal.
    """
    moments = moments.shared() if shared else moments
    C = moments.pairs
    several = [np.linalg.svd(C[ab], compute_uv=False) for ab in ((0, 1), (0, 2), (1, 2))]
    singular = np.min(several, axis=0)
    if not singular[-1] > 1e-12 * singular[0]:
        raise np.linalg.LinAlgError(f"a pair moment has the singular value {singular[-1]:.3g}")
    first = np.linalg.solve(C[0, 1].T, C[2, 1].T).T
    second = np.linalg.solve(C[1, 0].T, C[2, 0].T).T
    pair = first @ C[0, 1] @ second.T
    s, U = np.linalg.eigh((pair + pair.T) / 2.0)
    if not s[0] > 0:
        raise np.linalg.LinAlgError(f"the pair moment has the eigenvalue {s[0]:.3g}")
    whiten = U / np.sqrt(s)
    T = np.einsum("abc,ia,jb->ijc", moments.triples, first, second, optimize=True)
    T = symmetrized(np.einsum("abc,ai,bj,ck->ijk", T, whiten, whiten, whiten, optimize=True))
    values, vectors = tensor_power(T, seed)
    order = np.argsort(values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    if not values[0] > 0:
        raise np.linalg.LinAlgError(f"the third moment has the value {values[0]:.3g}")
    weights = values**-2.0
    third = (U * np.sqrt(s)) @ vectors * values
    # C_a3 = M_a W M_3' for the means M_a.
    first, second = (
        third if shared else np.linalg.solve(third * weights, C[2, a]).T for a in (0, 1)
    )
    return Mixture(weights, Triple(first, second, third), singular)


def responsibilities(mixture: Mixture, Z: Rows, view: int) -> Any:
    """Return g_h(x) with mean 1/weights_h in class h and mean zero in all others.

    Weighted by g_h of another view, rows of a view have the distribution of class h.
    """
    inverse = np.linalg.inv(mixture.means[view]) / mixture.weights[:, None]
    return Z @ like(inverse.T, Z, np.float64)
