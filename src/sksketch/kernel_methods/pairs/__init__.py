"""Two views: kernel canonical correlations and kernel singular values."""
