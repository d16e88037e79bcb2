"""Topic models that are networks: ProdLDA and its kin with gradients that are sums over documents, and networks of others."""
