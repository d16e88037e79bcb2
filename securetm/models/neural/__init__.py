"""ProdLDA, trained by gradients that are sums over documents, and the trials that refuse what couples documents."""
