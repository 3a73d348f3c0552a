"""Random coordinates as scikit-learn's projections have them: their number, and the way back."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import sksketch
from sksketch import NotMergeableError, RandomReduction

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("operator", ["countsketch", "gaussian", "srht", "sample"])
@pytest.mark.parametrize("width", [5, 60, 400])
def test_random_coordinates_lead_back_to_the_shortest_rows(operator, width):
    rows = RNG.standard_normal((20, width))
    model = RandomReduction(60, operator=operator).fit(rows)
    Z = model.transform(rows)
    back = model.inverse_transform(Z)
    pinv = np.linalg.pinv(model.components_)
    np.testing.assert_allclose(model.inverse_components_, pinv, atol=1e-8)
    np.testing.assert_allclose(back, Z @ pinv.T, atol=1e-8)
    np.testing.assert_allclose(model.transform(back), Z, atol=1e-9)
    assert model.inverse_transform(Z.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="pass what transform returned"):
        model.inverse_transform(Z[:, 1:])


def test_as_many_coordinates_as_distances_need(tmp_path):
    rows = RNG.standard_normal((50, 2000))
    model = RandomReduction("auto", eps=0.3, operator="gaussian").fit(rows)
    assert model.n_components == "auto"
    # 4 log(50) / (0.3^2 / 2 - 0.3^3 / 3), Dasgupta and Gupta (2003), theorem 2.1.
    assert model.n_components_ == model.transform(rows).shape[1] == 434
    ratios = [pdist(Z, "sqeuclidean") for Z in (model.transform(rows), rows)]
    assert (ratios[0] / ratios[1]).min() > 0.7
    assert (ratios[0] / ratios[1]).max() < 1.3
    model.save(tmp_path / "model.sks")
    again = sksketch.load(tmp_path / "model.sks")
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
    with pytest.raises(ValueError, match="larger than the original space with n_features=2000"):
        RandomReduction("auto", eps=0.05).fit(rows)
    with pytest.raises(ValueError, match="which a stream does not tell"):
        RandomReduction("auto").partial_fit(rows)
    with pytest.raises(NotMergeableError, match="alike"):
        RandomReduction("auto", eps=0.3).fit(rows).merge(
            RandomReduction("auto", eps=0.3).fit(rows[:40])
        )
