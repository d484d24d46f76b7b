#!/bin/sh
# Run once by the image of PostgreSQL, when its data folder is empty: the role of the server, which is no superuser,
# and its database.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --set password="$(cat /run/secrets/postgres_password)" <<'SQL'
CREATE ROLE signalbox LOGIN PASSWORD :'password';
CREATE DATABASE signalbox OWNER signalbox ENCODING 'UTF8' TEMPLATE template0;
SQL
