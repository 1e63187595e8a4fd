"""ExampleValidator: stops a run whose click log does not fit its schema, its splits or the past."""

from components.example_validator.component import ExampleValidator
