"""Parts of tools/evidence."""
