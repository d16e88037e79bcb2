"""Files as the carrier of a federation's messages, for organisations that can exchange files and open no connection."""
