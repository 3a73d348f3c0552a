"""Latent variables: mixtures of several views, and spectral clustering."""
