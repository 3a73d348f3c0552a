"""The online learners as Luo et al. (2019) have them: curvature made of gradients, raw columns."""

from sksketch import OnlineNewtonClassifier, OnlineNewtonRegressor

AS_IN_PAPER = {"curvature": "gradient", "normalize": False}


def paper_classifier(method="rfd", **options):
    return OnlineNewtonClassifier(method, **({"loss": "squared"} | AS_IN_PAPER | options))


def paper_regressor(method="rfd", **options):
    return OnlineNewtonRegressor(method, **(AS_IN_PAPER | options))
