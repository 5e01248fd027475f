"""One folder per agent: a descriptor and a seed tree."""
