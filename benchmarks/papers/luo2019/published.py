"""Tables 2 and 3 of Luo et al. (2019) for the data that we have as well."""

from __future__ import annotations

# Test accuracy in percent with the best initial ridge; one figure for each sketch size.
ACCURACY: dict[str, dict[str, tuple[float, ...]]] = {
    "a9a": {
        "AdaGrad": (83.4783,) * 3,
        "FULL-ON": (83.8264,) * 3,
        "FD": (83.6524, 83.6728, 83.6728),
        "PFD": (83.6728, 83.7138, 83.6626),
        "RP": (83.4374, 83.9492, 83.7650),
        "Oja": (83.6831, 83.6319, 83.5091),
        "RFD": (83.6319, 83.6831, 83.9390),
        "RFD0": (83.2429, 83.2634, 83.2736),
    },
    "farm-ads": {
        "AdaGrad": (89.3805,) * 3,
        "FD": (89.7023, 89.9437, 89.9437),
        "PFD": (90.0241, 89.8632, 90.0241),
        "RP": (88.8174, 89.7023, 89.4610),
        "Oja": (89.0587, 89.1392, 89.1392),
        "RFD": (89.7828, 89.8632, 90.3459),
        "RFD0": (87.6911, 88.8174, 88.8978),
    },
}
# Microseconds a row, Matlab on an i7-3770. Several entries of the table repeat digit for digit
# between algorithms, so these are orders of magnitude.
MICROSECONDS: dict[str, dict[str, tuple[float, ...]]] = {
    "a9a": {
        "AdaGrad": (98.3,) * 3,
        "FULL-ON": (231.0,) * 3,
        "FD": (286.0, 273.0, 349.0),
        "PFD": (261.0, 282.0, 321.0),
        "RP": (136.0, 273.0, 333.0),
        "Oja": (155.0, 167.0, 166.0),
        "RFD": (285.0, 318.0, 334.0),
        "RFD0": (275.0, 195.0, 236.0),
    },
    "farm-ads": {
        "AdaGrad": (320.0,) * 3,
        "FD": (1640.0, 3200.0, 5140.0),
        "PFD": (24500.0, 32400.0, 54800.0),
        "RP": (739.0, 3200.0, 5140.0),
        "Oja": (1310.0, 2890.0, 4440.0),
        "RFD": (2050.0, 3810.0, 5250.0),
        "RFD0": (2080.0, 3790.0, 5560.0),
    },
}
