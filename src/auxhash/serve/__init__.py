"""A model and a store behind HTTP: the service of `auxhash serve`. It needs auxhash[serve]."""
