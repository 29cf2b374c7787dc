"""Stand-ins for a package of Airflow."""
