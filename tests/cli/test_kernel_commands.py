"""The commands kpca and kcca: learn, resume, apply, report, and refuse."""

import json

import numpy as np
import pytest

import sksketch
from sksketch import StreamingKernelCCA, StreamingKernelPCA, cli
from sksketch.kernel_methods.piloted import EMBEDDED_ROWS

RNG = np.random.default_rng(0)
T = RNG.uniform(-1, 1, 900)
ROWS = np.column_stack([T, RNG.standard_normal(900), T**2, RNG.standard_normal(900)])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    np.savetxt(path, ROWS, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    return str(path)


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def test_kpca_learns_prints_applies_and_reports(table, tmp_path, capsys):
    model = tmp_path / "kpca.sks"
    assert run("kpca", table, "-k", 3, "-o", model, "--json", "-q") == 0
    facts = json.loads(capsys.readouterr().out)
    loaded = sksketch.load(model)
    assert isinstance(loaded, StreamingKernelPCA)
    assert facts["eigenvalues"] == pytest.approx(loaded.eigenvalues_)
    assert facts["rows_seen"] == 900
    assert list(loaded.feature_names_in_) == ["a", "b", "c", "d"]
    direct = StreamingKernelPCA(3, polish=0).fit(ROWS)
    assert loaded.eigenvalues_ == pytest.approx(direct.eigenvalues_, rel=1e-9)
    assert run("info", model) == 0
    assert "eigenvalue" in capsys.readouterr().out
    assert run("apply", model, table, "-o", tmp_path / "scores.npy", "-q") == 0
    vars(loaded).pop("feature_names_in_")
    assert np.load(tmp_path / "scores.npy") == pytest.approx(loaded.transform(ROWS))
    assert run("report", model, "-o", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<circle") == EMBEDDED_ROWS
    assert "Kernel PCA" in page


def test_steps_with_polish_and_a_kernel_with_parameters(table, tmp_path, capsys):
    model = tmp_path / "steps.sks"
    options = ["--solver", "sgd", "--polish", 2, "--features", 64, "--batch", 100]
    kernel = ["--kernel", "matern", "--parameter", "nu=2.5", "--bandwidth", 1.5]
    assert run("kpca", table, *options, *kernel, "-o", model) == 0
    loaded = sksketch.load(model)
    assert loaded.kernel_params == {"nu": 2.5}
    assert loaded.bandwidth_ == 1.5
    assert "doubly stochastic steps" in capsys.readouterr().out


def test_kcca_learns_prints_applies_and_reports(table, tmp_path, capsys):
    model = tmp_path / "kcca.sks"
    options = ["--other", "c,d", "-k", 2, "--features", 128, "--ridge", "1e-3"]
    assert run("kcca", table, *options, "-o", model, "--json", "-q") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["correlations"][0] > 0.9 > facts["correlations"][1]
    loaded = sksketch.load(model)
    assert isinstance(loaded, StreamingKernelCCA)
    direct = StreamingKernelCCA(2, n_random_features=128, ridge=1e-3)
    direct.fit(ROWS[:, :2], ROWS[:, 2:])
    assert loaded.correlations_ == pytest.approx(direct.correlations_, rel=1e-9)
    scores = tmp_path / "scores.csv"
    assert run("apply", model, table, "--columns", "a,b", "-o", scores, "-q") == 0
    assert scores.read_text().startswith("streamingkernelcca0,streamingkernelcca1\n")
    assert run("report", model, "-o", tmp_path / "page.html") == 0
    assert "flatters" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kpca", "--kernel", "tanh"], "kernel is 'tanh'; give one of 'gaussian'"),
        (["kpca", "--bandwidth", "wide"], "--bandwidth wide: expected a number"),
        (["kpca", "--parameter", "nu=x"], "--parameter nu x: expected a number"),
        (["kpca", "-k", "2000"], "needs more than the 900 sample(s)"),
        (["kcca", "--other", "z"], "'z'"),
        (["kcca", "--other", "c", "--ridge", "big"], "--ridge big: expected a number"),
    ],
)
def test_mistakes_get_one_line(arguments, message, table, tmp_path, capsys):
    output = tmp_path / "none.sks"
    assert run(arguments[0], table, *arguments[1:], "-o", output, "-q") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not output.exists()


@pytest.mark.parametrize("name", ["rows.svm", "rows.vw"])
def test_labels_of_sparse_files_are_no_second_view(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    colon = " | " if name.endswith("vw") else " "
    lines = [
        f"{(-1) ** i}{colon}" + " ".join(f"{j}:{rng.standard_normal():.4f}" for j in (1, 2, 3))
        for i in range(60)
    ]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    size = ["--n-features", 16] if name.endswith("vw") else []
    assert run("kpca", name, "-k", 2, *size, "-o", "m.sks", "-q") == 0
    assert sksketch.load("m.sks").n_samples_seen_ == 60
    assert not (tmp_path / "m.sks.checkpoint").exists()
