"""The learners of the paper: their curvature is made of gradients."""
