"""What a coordinator of a real federation needs beside its role: restarts, log, metrics, status page. It carries no bytes."""
