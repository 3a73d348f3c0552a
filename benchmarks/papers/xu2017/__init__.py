"""Xu et al. (2017): non-oblivious dimension reduction."""
