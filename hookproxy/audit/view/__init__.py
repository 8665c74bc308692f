"""What `hookproxy audit` shows of audit files: tables, statistics, charts, and whether a file is unchanged."""
