"""Latent Dirichlet allocation in its forms: by words, by sentences, by variational inference, and matched between parties."""
