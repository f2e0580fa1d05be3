"""Bytes on disk: measured, unpacked and cut into rows before any reader looks at their meaning."""
