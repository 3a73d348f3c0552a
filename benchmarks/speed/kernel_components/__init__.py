"""Kernel PCA and kernel CCA beside their peers."""
