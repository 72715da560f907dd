"""Pictures of an evaluation: ROC curve, calibration, and how the scores lie."""

from pathlib import Path

import numpy as np

from nbspam.errors import OptionError
from nbspam.evaluation.metrics import Floats
from nbspam.evaluation.report import Report

SUFFIXES = (".png", ".svg")


def check_plot(path: Path) -> None:
    """Raise OptionError unless a plot can be written to a file of this name."""
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"--plot {path}: draws PNG and SVG; name a file that ends in .png or .svg"
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise OptionError(
            f"--plot {path}: drawing needs matplotlib; install it with: pip install 'nbspam[plot]'"
        ) from error


def draw(report: Report, path: Path) -> None:
    """Draw the report's three pictures side by side into a file, PNG or SVG by its name.

    The ROC curve has logarithmic axes, as the TREC spam tracks draw it: a good filter's curve is
    all corner otherwise.
    """
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    spam, log_odds = report.spam, report.log_odds
    figure, (roc, said, scores) = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
    ham_lost, spam_missed = roc_points(report)
    floor = 100 * 0.5 / max(1, int((~spam).sum()))
    roc.plot(np.maximum(ham_lost, floor), np.maximum(spam_missed, floor), drawstyle="steps-post")
    roc.set(xscale="log", yscale="log", xlabel="ham lost, %", ylabel="spam missed, %", title="ROC")
    roc.grid(visible=True, which="both", alpha=0.3)
    said.plot([0, 1], [0, 1], color="0.7")
    said.plot([b.mean_probability for b in report.bins], [b.spam_share for b in report.bins], "o-")
    said.set(xlabel="probability said", ylabel="share of spam", title="calibration")
    for name, shown in (("ham", log_odds[~spam]), ("spam", log_odds[spam])):
        between = (float(log_odds.min()), float(log_odds.max()))
        scores.hist(shown, bins=60, range=between, label=name, histtype="step")
    scores.set(xlabel="log-odds, nats", ylabel="messages", yscale="log", title="scores")
    scores.legend()
    try:
        figure.savefig(path)
    finally:
        plt.close(figure)


def roc_points(report: Report) -> tuple[Floats, Floats]:
    """Return, for every cut-off, ham lost and spam missed, both in percent."""
    order = np.argsort(-report.log_odds, kind="stable")
    spam = report.spam[order]
    last = np.append(report.log_odds[order][1:] != report.log_odds[order][:-1], True)
    ham_lost = 100 * np.cumsum(~spam)[last] / max(1, int((~spam).sum()))
    spam_missed = 100 - 100 * np.cumsum(spam)[last] / max(1, int(spam.sum()))
    return ham_lost, spam_missed
