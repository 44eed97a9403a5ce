"""Tests mirror the source, room by room. What is not a test of one room lies at the top."""
