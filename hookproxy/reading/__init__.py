"""What people read in audit files: the calls that they look for, sums as charts, and whether a file is as written."""
