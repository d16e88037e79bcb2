"""What a party of a real federation needs beside its role: home, checks, the beat of answers. It carries no bytes."""
