"""Handwritten digits as two halves, and an endless stream of deformed ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.ndimage import map_coordinates
from sklearn.datasets import load_digits

Pair = tuple[np.ndarray, np.ndarray]
# Deformations are uniform up to these: degrees, slope, share, and share of the width.
TURN, SHEAR, SCALE, SHIFT = 8.0, 0.1, 0.07, 2.0 / 28.0


@dataclass(frozen=True)
class Digits:
    """Square images between 0 and 1, shape (n_images, width, width)."""

    name: str
    train: np.ndarray
    test: np.ndarray


def missing() -> str:
    """Say why MNIST can not be read; nothing if it can."""
    folder = os.environ.get("SKSKETCH_DATA")
    if folder is None:
        return "SKSKETCH_DATA is not set; it names the folder of mnist.npz"
    path = Path(folder) / "mnist.npz"
    return "" if path.exists() else "there is no mnist.npz in the folder SKSKETCH_DATA"


def mnist() -> Digits:
    held = np.load(Path(os.environ["SKSKETCH_DATA"]) / "mnist.npz")
    images = held["X"].astype(np.float32).reshape(-1, 28, 28) / np.float32(255)
    n_train = int(held["n_train"])
    return Digits("MNIST", images[:n_train], images[n_train:])


def small() -> Digits:
    """Return the 8 x 8 digits that come with scikit-learn."""
    images = (load_digits().images / 16.0).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    return Digits("8 x 8 digits", images[order[:1297]], images[order[1297:]])


def rows(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)


def halves(images: np.ndarray) -> Pair:
    """Return the left and the right half of each image as rows."""
    middle = images.shape[2] // 2
    left, right = images[:, :, :middle], images[:, :, middle:]
    return np.ascontiguousarray(rows(left)), np.ascontiguousarray(rows(right))


def deformed(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return each image turned, sheared, scaled and shifted a little, at random."""
    n, width, _ = images.shape

    def draw(most: float) -> np.ndarray:
        return rng.uniform(-most, most, (n, 1, 1)).astype(np.float32)

    angle, shear, scale = draw(np.radians(TURN)), draw(SHEAR), 1.0 + draw(SCALE)
    cos, sin = np.cos(angle) / scale, np.sin(angle) / scale
    middle = (width - 1) / 2.0
    along = np.arange(width, dtype=np.float32) - middle
    y, x = along[None, :, None], along[None, None, :]
    # Where each pixel of the new image comes from.
    from_y = -sin * x + (cos - shear * sin) * y + draw(SHIFT * width) + middle
    from_x = cos * x + (sin + shear * cos) * y + draw(SHIFT * width) + middle
    which = np.broadcast_to(np.arange(n, dtype=np.float32)[:, None, None], images.shape)
    return map_coordinates(images, [which, from_y, from_x], order=1, output=np.float32)


class Stream:
    """Endless batches of pairs of halves: the train images in random orders, or deformed ones."""

    def __init__(self, digits: Digits, deform: bool, seed: int) -> None:
        self.images, self.deform = digits.train, deform
        self.rng = np.random.default_rng(seed)
        self._order = np.empty(0, np.int64)

    def take(self, n: int) -> Pair:
        """Return the halves of the next so many images."""
        if len(self._order) < n:
            again = -(-n // len(self.images))
            orders = [self.rng.permutation(len(self.images)) for _ in range(again)]
            self._order = np.concatenate([self._order, *orders])
        chosen, self._order = self._order[:n], self._order[n:]
        batch = self.images[chosen]
        return halves(deformed(batch, self.rng) if self.deform else batch)


def held_out(digits: Digits, deform: bool) -> Pair:
    """Return test pairs: the test images, or train images deformed otherwise."""
    if not deform:
        return halves(digits.test)
    # As the reference has it: the test rows are further variants of the same images.
    return Stream(digits, True, 99).take(len(digits.test))
