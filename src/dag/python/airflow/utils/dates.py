"""Dates, as Airflow 2 had them."""

import pendulum

cron_presets = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}


def days_ago(n, hour=0, minute=0, second=0, microsecond=0):
    """Midnight some days ago."""
    today = pendulum.now("UTC").replace(hour=hour, minute=minute, second=second, microsecond=microsecond)
    return today.subtract(days=n)
