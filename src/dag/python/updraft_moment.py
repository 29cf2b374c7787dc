"""Moments, which travel as ISO text."""


def moment(text):
    """A pendulum datetime from ISO text; None stays None."""
    if text is None:
        return None
    import pendulum

    return pendulum.parse(text)


def moment_text(moment):
    """A moment as ISO text with its offset; what is text or None already stays."""
    if moment is None or isinstance(moment, str):
        return moment
    if moment.tzinfo is None:
        import datetime

        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return moment.isoformat()
