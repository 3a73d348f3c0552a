"""Xie, Liang and Song (2015): kernel components by doubly stochastic steps."""
