"""The small corpus and recipe of the recipe tests."""

from tests.recipes.conftest import corpus, make, preset  # noqa: F401
