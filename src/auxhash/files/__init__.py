"""Reading the user's own files: features, labels, pairs and pictures."""
