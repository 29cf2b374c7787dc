# Two images: `updraft`, the worker (the default), and `airflow`, the server side with the two providers it needs.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
# The dependencies alone first, so that a change of the source does not compile them again.
RUN mkdir src benches && echo 'fn main() {}' | tee src/main.rs > benches/sql_guard.rs && touch src/lib.rs \
    && cargo build --release --locked && rm -r src
COPY build.rs ./
COPY benches/code_layout.txt benches/
COPY src src
RUN touch src/main.rs src/lib.rs && cargo build --release --locked --bin updraft

FROM apache/airflow:3.3.2 AS airflow
RUN pip install --no-cache-dir \
    apache-airflow==3.3.2 \
    apache-airflow-providers-edge3==5.1.0 \
    "apache-airflow-providers-common-ai[sql]==1.0.0" \
    apache-airflow-providers-postgres==7.1.1 \
    apache-airflow-providers-sqlite==4.3.4

FROM debian:bookworm-slim AS updraft
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libssl3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 50000 airflow
COPY --from=build /src/target/release/updraft /usr/local/bin/updraft
USER airflow
ENV AIRFLOW_HOME=/home/airflow
WORKDIR /home/airflow
# SIGTERM drains: no new tasks, running ones finish.
STOPSIGNAL SIGTERM
ENTRYPOINT ["updraft"]
CMD ["worker", "--queues", "agents"]
