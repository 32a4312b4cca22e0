"""The package of script/check-all: plan lists checks, work runs them, state keeps their results, record writes the page."""
