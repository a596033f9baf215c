"""What stores measure."""
