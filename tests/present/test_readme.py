"""What the README shows and claims: its commands print that, and its figures are those kept."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sksketch

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
pytestmark = pytest.mark.skipif(not README.exists(), reason="needs the README of a clone")
kept = pytest.mark.skipif(not RESULTS.exists(), reason="needs the figures of a clone")

RATIO = re.compile(r"(\d[\d.]*)(?: to (\d[\d.]*))? \u00d7")
COUNT = re.compile(r"(\d+) of (\d+) (?:streams|cases)")
CLASSIFIER = "OnlineNewtonClassifier"


# The shell


def transcript():
    """Return the commands of the README, each with what it is said to print."""
    (block,) = re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    shown: list[tuple[str, str]] = []
    for line in block.splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "$":
            shown.append((rest, ""))
        elif mark == ">":
            shown[-1] = (f"{shown[-1][0]}\n{rest}", "")
        else:
            shown[-1] = (shown[-1][0], f"{shown[-1][1]}{line}\n")
    return shown


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_commands_print_what_is_shown(tmp_path):
    programs, work = tmp_path / "bin", tmp_path / "work"
    programs.mkdir()
    work.mkdir()
    for name, module in (("python", ""), ("sksketch", "-m sksketch ")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module}"$@"\n')
        program.chmod(0o755)
    paths = [str(Path(sksketch.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    shown = transcript()
    assert sum(command.startswith("sksketch") for command, _ in shown) == 5
    checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for command, expected in shown:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert checker.check_output(expected, done.stdout, flags), f"{command}\n{done.stdout}"


# The figures


def peers(script, peer, ours="", case=""):
    """Return the kept medians of one script beside one peer, as extremes."""
    figures = json.loads((RESULTS / "peers.json").read_text(encoding="utf-8"))
    (rows,) = (rows for name, rows in figures.items() if name.startswith(f"{script}:"))
    found = [
        float(row["peer's time over ours"])
        for row in rows
        if re.fullmatch(peer, row["peer"]) and row["ours"].startswith(ours) and case in row["case"]
    ]
    return min(found), max(found)


def fewer_errors(peer):
    """Return in how many streams the online learner errs less than a peer, and of how many."""
    streams = json.loads((RESULTS / "streams.json").read_text(encoding="utf-8"))
    pairs = [
        (lines[CLASSIFIER]["figures"][0], lines[peer]["figures"][0])
        for stream in streams["results"]["classification"].values()
        if "figures" in (lines := stream["lines"]).get(peer, {})
    ]
    return sum(ours < theirs for ours, theirs in pairs), len(pairs)


def lower_covariance_error():
    """Return in how many cases of dense rows our error is below that of IncrementalPCA."""
    figures = json.loads((RESULTS / "peers.json").read_text(encoding="utf-8"))
    said = " ".join(row["figure"] for row in figures["What is asked of the figures"])
    pairs = re.findall(r"cov error ([\d.e-]+), IPCA ([\d.e-]+)", said)
    return sum(float(ours) < float(theirs) for ours, theirs in pairs), len(pairs)


# For each line of the README, in its order: the ratios and the counts that stand in it.
CLAIMS = {
    "| `IncrementalPCA`": lambda: (
        [peers("dense", "IncrementalPCA good")],
        [lower_covariance_error()],
    ),
    "| `TruncatedSVD`": lambda: (
        [peers("sparse", "TruncatedSVD randomized", ours="FrequentDirections")],
        [],
    ),
    "| `KernelPCA`": lambda: (
        [
            peers("kernel", "KernelPCA randomized", case=case)
            for case in ("pca 32000", "pca 8000", "pca 2000")
        ],
        [],
    ),
    "| `SGDClassifier`": lambda: (
        [
            peers("online", "SGDClassifier, row by row", ours=CLASSIFIER),
            peers("online", "SGDClassifier, whole", ours=CLASSIFIER),
        ],
        [fewer_errors("SGDClassifier log_loss")],
    ),
    "| River": lambda: (
        [peers("online", "River LogisticRegression", ours=CLASSIFIER)],
        [fewer_errors("River scaler + logistic")],
    ),
    "| Vowpal Wabbit": lambda: (
        [
            peers("online", "VW", ours=CLASSIFIER),
            peers("online", r"VW OjaNewton m=\d+", ours=CLASSIFIER),
        ],
        [fewer_errors("VW logistic")],
    ),
    "| dask-ml": lambda: ([peers("dask", "dask-ml .*")], []),
    "  covariance took": lambda: ([peers("dense", "PCA covariance_eigh")], []),
}


def lines_with_figures():
    lines = README.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if RATIO.search(line) or COUNT.search(line)]


@kept
def test_no_figure_stands_in_another_line():
    assert len(lines_with_figures()) == len(CLAIMS)


@kept
@pytest.mark.parametrize("start", CLAIMS)
def test_figures_are_those_of_the_kept_results(start):
    (line,) = (line for line in lines_with_figures() if line.startswith(start))
    ratios, counts = CLAIMS[start]()
    said = [(low, high or low) for low, high in RATIO.findall(line)]
    assert len(said) == len(ratios)
    for numbers, measured in zip(said, ratios, strict=True):
        for number, value in zip(numbers, measured, strict=True):
            digits = len(number.partition(".")[2])
            assert number == f"{value:.{digits}f}", line
    assert [(int(good), int(all_)) for good, all_ in COUNT.findall(line)] == counts


@kept
def test_version_and_machine_are_those_of_the_results():
    facts = json.loads((RESULTS / "peers.json").read_text(encoding="utf-8"))["facts"]
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert f"version {facts['sksketch']} on {facts['cores']} cores" in text


@kept
def test_the_picture_is_drawn_from_the_results():
    tool = importlib.import_module("tools.picture")
    figures = json.loads(tool.RESULTS.read_text(encoding="utf-8"))
    assert tool.PICTURE.read_text(encoding="utf-8") == tool.picture(figures)


# Links and names


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_names_in_code_exist():
    """Names of classes and functions are public here, or belong to a peer."""
    text = README.read_text(encoding="utf-8")
    words = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+)", text))
    theirs = {"IncrementalPCA", "TruncatedSVD", "KernelPCA", "SGDClassifier", "SGDRegressor"}
    theirs |= {"LogisticRegression"}
    assert words - theirs <= set(sksketch.__all__)
