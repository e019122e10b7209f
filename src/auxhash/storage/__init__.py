"""What is kept on disk: whole files, values as JSON and arrays, model files, a run's identity."""
