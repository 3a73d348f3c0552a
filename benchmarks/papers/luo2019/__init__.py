"""Luo, Chen, Zhang, Li and Zhang (2019): Robust Frequent Directions with online learners."""
