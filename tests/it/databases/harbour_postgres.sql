CREATE TABLE customers (id integer PRIMARY KEY, name varchar(40) NOT NULL, since date, notes text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id integer REFERENCES customers, total numeric(10, 2), paid boolean,
    placed timestamp with time zone);
CREATE VIEW busy AS SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id;
CREATE SCHEMA depot;
CREATE TABLE depot.stock (item varchar(10), amount real, tags text[]);
CREATE SEQUENCE visits;
CREATE FUNCTION purge() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN DELETE FROM orders; RETURN 1; END $$;
INSERT INTO customers VALUES (1, 'Ada', '2020-02-29', NULL), (2, 'Belém', '1999-12-31', 'says "hi"'), (3, '日本', NULL, E'two\nlines');
INSERT INTO orders SELECT g, g % 3 + 1, g * 1.25, g % 2 = 0, timestamptz '2024-01-01 00:00+00' + g * interval '90 minutes'
    FROM generate_series(1, 60) g;
INSERT INTO depot.stock VALUES ('rope', 1.5, '{"a","b c"}'), ('sail', 'NaN', NULL);
