project "acme" {
  name        = 3                 # ERROR: wants a string, found a number
  description = ["x"]             # ERROR: wants a string, found a list
  status      = "active"          # ERROR: did you mean `ACTIVE`?
  id          = "42"              # ERROR: write 42 without quotes
  domain "a.example" {
    primary = "true"              # ERROR: write true without quotes
    active  = null                # ERROR: to set nothing, leave the line out
  }
  service_settings {
    auth_enabled = yes            # ERROR: wants true or false, found a reference
    mail_enabled = 1              # ERROR: wants true or false, found a number
    sms_provider = true           # ERROR: wants a string, found true
    audit_retention_days = 1.5    # ERROR: found a fraction
  }
  auth_settings {
    registration_mode   = INVITE_ONLY  # ERROR: write it in double quotes
    session_timeout     = 1e10000000   # ERROR: the number is too large
    password_min_length = -3           # ERROR: must be from 1 to 1024
    jwt_expires_in      = "15 minutes" # ERROR: must be a number with a unit
  }
  smtp_config {
    host       = "h.example:25"   # ERROR: without a port
    port       = 0                # ERROR: port: must be from 1 to 65535
    from_email = "Acme <a@b.example>" # ERROR: one bare address
    username   = { a = 1 }        # ERROR: wants a string, found a map
    password   = 12345678         # ERROR: sealed("…") or a string, found a number
  }
}

key "k" {
  id         = "abcdefg"
  hash       = "sha256:1234"      # ERROR: 64 hexadecimal digits
  allow      = "mail"             # ERROR: put square brackets around it
  projects   = ["acme", 3, "Bad Slug"]  # ERROR: wants strings in its list, found a number # ERROR: lower-case letters
  expires_at = "next year"        # ERROR: write it as "2027-06-30T00:00:00"
}

key "l" {
  id    = "x"                     # ERROR: 6 to 16
  hash  = "sha256:b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4"
  allow = ["reed", "mail", "root"] # ERROR: did you mean `read`? # ERROR: allow: must be one of
  projects = []                   # WARNING: reaches no project
}

sealing {
  recipients = ["age1abc"]        # ERROR: no age X25519 recipient
  require    = "true"             # ERROR: write true without quotes
}
