"""The profiles that are shipped, by protocol, one file each; `wire/profile.py` has their form."""
