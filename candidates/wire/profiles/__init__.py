"""The profiles that are shipped, one file each; `wire/profile.py` has their form."""
