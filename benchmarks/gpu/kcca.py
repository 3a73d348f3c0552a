"""Kernel CCA of the two halves of handwritten digits on a GPU: the run of Xie, Liang and Song.

3000 steps of 1024 pairs with 20,480 random features a view, 50 components, on the 60,000 digits
and on an endless stream of deformed ones (rotation, shear, scale and shift drawn for each digit
on the device). Prints the held-out total correlation as it goes and the time of the steps.

    SKSKETCH_DATA=... python -m benchmarks.gpu.kcca [--quick] [--device cuda] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch

import sksketch
from sksketch import StreamingKernelCCA

WIDTH = 28


def digits(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the train and test images, between 0 and 1."""
    folder = os.environ.get("SKSKETCH_DATA")
    if folder is None:
        sys.exit("SKSKETCH_DATA is not set: mnist.npz is needed")
    held = np.load(Path(folder) / "mnist.npz")
    images = torch.asarray(held["X"].astype(np.float32) / 255.0, device=device)
    images = images.reshape(-1, WIDTH, WIDTH)
    return images[: int(held["n_train"])], images[int(held["n_train"]) :]


def halves(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the left and the right half of each image as rows."""
    half = WIDTH // 2
    return images[:, :, :half].reshape(len(images), -1), images[:, :, half:].reshape(
        len(images), -1
    )


def deformed(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return each image turned, sheared, scaled and shifted a little, at random."""
    n, device = len(images), images.device

    def draw(width: float) -> torch.Tensor:
        return (2.0 * torch.rand(n, generator=generator, device=device) - 1.0) * width

    angle, shear, scale = draw(math.radians(8.0)), draw(0.1), 1.0 + draw(0.07)
    cos, sin = torch.cos(angle) / scale, torch.sin(angle) / scale
    # Pixels of a shift are in units of half the width.
    shift_x, shift_y = (draw(2.0) / (WIDTH / 2) for _ in range(2))
    first = torch.stack([cos, sin + shear * cos, shift_x], dim=1)
    second = torch.stack([-sin, cos - shear * sin, shift_y], dim=1)
    grid = torch.nn.functional.affine_grid(
        torch.stack([first, second], dim=1), [n, 1, WIDTH, WIDTH], align_corners=False
    )
    found = torch.nn.functional.grid_sample(images[:, None], grid, align_corners=False)
    return found[:, 0]


class Batches:
    """Endless batches of images, as they are or deformed."""

    def __init__(self, images: torch.Tensor, deform: bool, seed: int) -> None:
        self.images, self.deform = images, deform
        self.generator = torch.Generator(images.device).manual_seed(seed)

    def take(self, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the halves of so many random images."""
        chosen = torch.randint(
            len(self.images), (n,), generator=self.generator, device=self.images.device
        )
        batch = self.images[chosen]
        return halves(deformed(batch, self.generator) if self.deform else batch)


def run(
    name: str, train: Batches, test: tuple, args: argparse.Namespace, marks: list[int], ridge: float
) -> dict:
    """Make the steps, and measure at the marks."""
    ridge = args.ridge or ridge
    model = StreamingKernelCCA(
        50 if not args.quick else 5,
        n_random_features=args.features,
        ridge=ridge,
        solver="sgd",
        step=args.step,
        batch_size=args.batch,
        cache_features=True,
    )
    synchronize = torch.cuda.synchronize if args.device == "cuda" else (lambda: None)
    synchronize()
    start = time.perf_counter()
    model.partial_fit(*train.take(4000))
    synchronize()
    begin = time.perf_counter() - start
    spent, done, rows = 0.0, 0, []
    for mark in marks:
        synchronize()
        start = time.perf_counter()
        for _ in range(mark - done):
            model.partial_fit(*train.take(args.batch))
        synchronize()
        spent, done = spent + time.perf_counter() - start, mark
        # The rotation to pairs comes from rows of the training stream.
        model._solver.learner.measure(*train.take(10_000 if not args.quick else 500))
        model._answers = {}
        total = model.score(*test)
        both = model.total_correlation(*test, rotate=True)
        rows.append({"steps": mark, "seconds": spent, "paired": total, "canonical": both})
        print(
            f"{name:28s} {mark:5d} steps  {spent:7.2f} s  total correlation on held-out pairs "
            f"{total:6.2f} paired, {both:6.2f} canonical",
            flush=True,
        )
    print(f"{name:28s} ridge {ridge:g}, pilot {begin:.2f} s, {1e3 * spent / done:.3f} ms a step")
    return {"name": name, "ridge": ridge, "pilot_seconds": begin, "rows": rows}


def main() -> None:
    """Run both streams and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tf32", action="store_true", help="allow products in TF32")
    parser.add_argument("--features", type=int, default=None)
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--ridge", type=float, default=None, help="1e-6, or 1e-7 for the stream")
    parser.add_argument("--step", default="preconditioned")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    args.features = args.features or (512 if args.quick else 20_480)
    args.batch = args.batch or (256 if args.quick else 1024)
    if args.tf32:
        torch.set_float32_matmul_precision("high")
    train, test = digits(args.device)
    if args.quick:
        train, test = train[:6000], test[:1000]
    marks = [5, 20] if args.quick else [100, 300, 1000, 3000]
    device = torch.cuda.get_device_name() if args.device == "cuda" else platform.processor()
    print(
        f"{device}, torch {torch.__version__}, sksketch {sksketch.__version__}, "
        f"{args.features} features, batches of {args.batch}, {args.step} "
        f"steps, {'TF32' if args.tf32 else 'float32'}"
    )
    results = [
        run("60,000 digits", Batches(train, False, 0), halves(test), args, marks, 1e-6),
    ]
    other = torch.Generator(train.device).manual_seed(99)
    pool = train[:: max(1, len(train) // 10_000)][:10_000]
    held = halves(deformed(pool, other))
    results.append(run("deformed digits", Batches(train, True, 1), held, args, marks, 1e-7))
    print("paper (one machine of 2015): 183 minutes for 3000 iterations, 43.5 on its 8-million set")
    if args.out:
        asked = {key: str(value) for key, value in vars(args).items() if key != "out"}
        facts = {"processor": device, "torch": str(torch.__version__), **asked}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps({"facts": facts, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
