inbound "ses" {} # ERROR: "format" is missing # ERROR: "secret" is missing
inbound "SES" { # ERROR: as "ses" does
  format   = "sns" # ERROR: must be one of ses, postmark, json
  secret   = ["short", env("A"), env("B"), env("C")] # WARNING: clear text # ERROR: 4 values, 3 are allowed # ERROR: must have 16 to 200
  projects = ["Acme", "acme", "acme"] # ERROR: no slug # ERROR: in the list twice
  topic    = "arn" # ERROR: unknown attribute
}
inbound "ses" { # ERROR: declared twice
  format   = "jsn" # ERROR: did you mean `json`
  secret   = [] # ERROR: is required
  projects = [] # WARNING: is empty
}
inbound "nested" {
  format = json # ERROR: wants a string
  secret = env("A", "B") # ERROR: one string
  rule {} # ERROR: it stands inside a login block
}
inbound { # ERROR: its name
  format  = "json"
  secret  = "" # ERROR: must not be empty
  project = ["acme"] # ERROR: did you mean `projects`
}
