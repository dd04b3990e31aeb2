name: acme # ERROR: this is YAML
projects:
  - a
