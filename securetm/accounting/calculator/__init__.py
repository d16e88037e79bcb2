"""What `securetm budget` computes: figures and sentences from public numbers."""
