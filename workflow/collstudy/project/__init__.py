"""All studies of a checkout: what they need, how far they are."""
