"""Older homes of names of Airflow."""
