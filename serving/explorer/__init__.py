"""The explorer: a page that shows where the list of a query ends, and why."""
