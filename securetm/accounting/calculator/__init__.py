"""What `securetm budget` computes: figures and sentences from public numbers, one file for each question. It prints nothing."""
