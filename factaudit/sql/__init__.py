"""Audits of tables that do not fit into memory, by queries of an engine that holds them.

`source` says where tables are, `engine` runs queries (DuckDB; `spark` elsewhere), `prepare` checks the tables and joins
them once, and `stored` answers what audits of rates and orders ask (`factaudit.arrays.count_source`). The SQL is what
DuckDB, Spark and BigQuery share; docs/past-memory.md says why it is written by hand.
"""
