webhook "crm" {} # ERROR: "url" is missing # ERROR: "secret" is missing
webhook "CRM" { # ERROR: as "crm" does
  url    = "http://hooks.crm.example/x" # ERROR: must begin with https: http is for an IP address
  secret = ["whsec_short", env("A"), env("B"), env("C")] # WARNING: clear text # ERROR: 4 values, 3 are allowed # ERROR: must be "whsec_" and 24 to 64
  events = ["dom*", "domain.updat", "mail.*", "mail.*", "*.create"] # ERROR: domain.* # ERROR: `domain.update` # ERROR: in the list twice # ERROR: a star stands alone
  projects = ["Acme", "acme"] # ERROR: no slug
  retries = 3 # ERROR: unknown attribute
}
webhook "crm" { # ERROR: declared twice
  url    = "https://u:p@hooks.crm.example:0/x#y" # ERROR: user # ERROR: "#" # ERROR: port
  secret = [] # ERROR: is required
  events = [] # ERROR: is empty
  active = "yes" # ERROR: wants
}
webhook "http" {
  url    = "http://192.168.0.1/x" # ERROR: no --webhook-allow names
  secret = env("A", "B") # ERROR: one string
  event  = ["*"] # ERROR: did you mean `events`
}
webhook "nested" {
  url = env("URL") # ERROR: cannot stand here
  secret = [[env("A")]] # ERROR: wants
  headers {} # ERROR: unknown block
}
webhook { # ERROR: its name
  url    = "https://hooks.crm.example/x"
  secret = "" # ERROR: must not be empty
}
