"""What nbval leaves uncompared: pictures and markup, whose text form it still compares."""


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html", "image/svg+xml")
