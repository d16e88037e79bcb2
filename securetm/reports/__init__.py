"""What people see: tables in the terminal and pages. It computes nothing new."""
