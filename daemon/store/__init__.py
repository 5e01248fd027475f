"""Store: the database engine, its one writer, every table and migration."""
