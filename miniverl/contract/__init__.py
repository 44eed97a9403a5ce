"""The contract: frozen types that cross a process boundary, each valid from birth. No torch."""
