"""Topic models trained across organisations that may not show each other their documents."""

__version__ = "0.1.0"
