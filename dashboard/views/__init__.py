"""One file per page: widgets, then the service, then a figure."""
