"""What a run reports: metrics declared once, and the sinks they go to. No torch."""
