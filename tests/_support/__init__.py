"""What tests share: the truth in extended precision, and the torture of certificates."""
