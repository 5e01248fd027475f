"""The cookbook: one folder per recipe. Recipes import `reef` only."""
