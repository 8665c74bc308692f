"""What `hookproxy audit` shows of audit files: tables, totals, charts, and whether a file is as it was written."""
