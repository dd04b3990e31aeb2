login "company" {} # ERROR: "issuer" is missing # ERROR: "client_id" is missing # WARNING: has no rule
login "Company" { # ERROR: as "company" does
  issuer        = "http://login.acme.example/" # ERROR: must begin with https: http is for an IP address
  client_id     = "" # ERROR: is required
  client_secret = [env("A")] # ERROR: wants
  scopes        = ["email", "pro file", "email"] # ERROR: must have "openid" # ERROR: an element of its own # ERROR: in the list twice
  label         = "" # ERROR: must not be empty
  ca_file       = "../ca.pem" # ERROR: leads out of the folder
  redirect_uri  = "https://x.example/" # ERROR: unknown attribute
  rule {} # ERROR: "claim" is missing # ERROR: "value" is missing # ERROR: "allow" is missing
  rule {
    claim    = "groups"
    value    = "*" # ERROR: "*" alone
    allow    = ["read", "wrte", "create"] # ERROR: did you mean `write` # ERROR: needs an owner, which a key has
    projects = ["Acme", "acme"] # ERROR: no slug
    except   = ["x"] # ERROR: unknown attribute
  }
  rule "ops" { # ERROR: has no label
    claim = "groups"
    value = "a*b" # ERROR: at one end
    allow = [] # ERROR: must name at least one
  }
  rule {
    claim = "email"
    value = "*x*" # ERROR: one "*" at most
    allow = "read" # ERROR: wants
    rule {} # ERROR: a rule block cannot stand here
  }
  rules {} # ERROR: did you mean `rule`
}
login "company" { # ERROR: declared twice
  issuer    = "http://192.168.0.1/" # ERROR: no --login-allow names
  client_id = env("ID") # ERROR: cannot stand here
  claim     = "groups" # ERROR: it belongs into rule
  rule      = { claim = "a" } # ERROR: "rule" is a block
  rule {
    claim = "groups"
    value = "ops"
    allow = ["read"]
  }
}
rule { # ERROR: it stands inside a login block
  claim = "x"
}
login { # ERROR: its name
  issuer        = "https://login.acme.example/.well-known/openid-configuration" # ERROR: leave /.well-known/openid-configuration out
  client_id     = "x"
  client_secret = "" # ERROR: must not be empty
  rule {
    claim = ""  # ERROR: is required
    value = "x"
    allow = ["read"]
  }
}
