CREATE TYPE mood AS ENUM ('sad', 'ok', 'hap''py');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN code AS varchar(5) NOT NULL DEFAULT 'x';
CREATE COLLATION plain (locale = 'C');
CREATE SCHEMA depot;
CREATE TYPE depot.flag AS ENUM ('NO','SE');
CREATE DOMAIN depot.tag AS text;
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE TABLE depot.stock (id int primary key, f depot.flag, t depot.tag, m public.mood);
CREATE TABLE collated (a text COLLATE plain, b varchar(5) COLLATE "C", c text COLLATE "default");
CREATE TABLE "Odd Name" ("Sel ect" int, "ü" text);
CREATE TABLE kinds (
 c_int int, c_big bigint, c_small smallint, c_serial serial, c_id bigint generated always as identity,
 c_num numeric, c_num2 numeric(10,2), c_num3 numeric(5), c_dec decimal(12,4), c_real real, c_double double precision, c_f24 float(24), c_money money,
 c_v varchar, c_v20 varchar(20), c_c char, c_c5 char(5), c_text text, c_name name, c_char "char", c_citext text collate "C", c_vc varchar(10) collate "POSIX",
 c_bytea bytea, c_bool boolean, c_date date, c_time time, c_time3 time(3), c_timetz timetz, c_timetz2 timetz(2), c_ts timestamp, c_ts3 timestamp(3), c_tstz timestamptz, c_tstz0 timestamptz(0),
 c_iv interval, c_iv2 interval(2), c_ivy interval year to month, c_ivs interval second(3), c_uuid uuid, c_json json, c_jsonb jsonb, c_xml xml,
 c_inet inet, c_cidr cidr, c_mac macaddr, c_mac8 macaddr8, c_bit bit, c_bit5 bit(5), c_vb bit varying, c_vb5 varbit(5),
 c_point point, c_line line, c_lseg lseg, c_box box, c_path path, c_poly polygon, c_circle circle, c_tsv tsvector, c_tsq tsquery, c_oid oid, c_regclass regclass, c_regtype regtype, c_lsn pg_lsn,
 c_i4r int4range, c_i8r int8range, c_nr numrange, c_dr daterange, c_tsr tsrange, c_tstzr tstzrange, c_mr int4multirange, c_fr floatrange,
 c_ia int[], c_ia2 int[][], c_ta text[], c_na numeric(10,2)[], c_va varchar(5)[], c_ma mood[], c_da date[], c_mood mood, c_pair pair, c_pairs pair[], c_pos posint, c_code code, c_posa posint[], c_flag depot.flag, c_tag depot.tag, c_jsona jsonb[], c_tstza timestamptz(3)[], c_boxa box[], c_char5a char(5)[], c_jp jsonpath, c_xid xid, c_tid tid
);
CREATE VIEW v AS SELECT 1 AS one, now() AS n, NULL AS nothing, c_num FROM kinds;
CREATE MATERIALIZED VIEW mv AS SELECT 1::bigint AS one;
CREATE TABLE parted (id int, d date) PARTITION BY RANGE (d);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE nocols ();
CREATE TABLE gen (a int, b int generated always as (a*2) stored);
CREATE TABLE big AS SELECT g AS id, 'row ' || g AS name FROM generate_series(1, 2000) g;
