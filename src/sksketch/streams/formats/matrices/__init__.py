"""Matrices in files and objects of science: HDF5, AnnData, NetCDF, Matrix Market."""
