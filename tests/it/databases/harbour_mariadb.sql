CREATE TABLE customers (id int PRIMARY KEY, name varchar(40) NOT NULL, since date, notes text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, total decimal(10, 2), paid boolean, placed datetime,
    FOREIGN KEY (customer_id) REFERENCES customers (id));
CREATE VIEW busy AS SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id;
CREATE DATABASE IF NOT EXISTS depot;
CREATE OR REPLACE TABLE depot.stock (item varchar(10), amount float, tags json);
CREATE SEQUENCE visits;
CREATE FUNCTION clean_out() RETURNS integer BEGIN DELETE FROM orders; RETURN 1; END;
INSERT INTO customers VALUES (1, 'Ada', '2020-02-29', NULL), (2, 'Belém', '1999-12-31', 'says "hi"'), (3, '日本', NULL, 'two\nlines');
INSERT INTO orders SELECT seq, seq % 3 + 1, seq * 1.25, seq % 2 = 0, timestamp '2024-01-01 00:00:00' + interval seq * 90 minute
    FROM seq_1_to_60;
INSERT INTO depot.stock VALUES ('rope', 1.5, '["a", "b c"]'), ('sail', NULL, NULL);
