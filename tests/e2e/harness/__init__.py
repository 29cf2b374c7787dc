"""What the end-to-end tests stand on: a real Airflow, a scripted model, an OTLP receiver, a worker process."""
