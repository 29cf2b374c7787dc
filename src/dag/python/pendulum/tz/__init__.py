"""Time zones."""

from pendulum.tz.timezone import UTC, FixedTimezone, Timezone, fixed_timezone, local_timezone, timezone

__all__ = ["UTC", "FixedTimezone", "Timezone", "fixed_timezone", "local_timezone", "timezone"]
