"""Dense rows: PCA beside its peers."""
