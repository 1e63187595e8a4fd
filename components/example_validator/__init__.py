"""ExampleValidator: stops a run whose click log does not fit its schema, its splits or the past."""

from components.example_validator.component import ExampleValidator
from components.example_validator.resolver import last_accepted_run

__all__ = ["ExampleValidator", "last_accepted_run"]
