"""A small transformer that really shares prefixes and serves an offline job in any order; torch in the worker only."""
