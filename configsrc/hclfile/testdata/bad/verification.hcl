# Proofs of domains. The day of the fixtures is 2026-11-27.
defaults {
  verification {
    require = "everybody"                     # ERROR: require: must be one of none, project-keys, all
    targets = [
      "edge.example.net",
      "203.0.113.0/33",                       # ERROR: targets: the target
      "https://edge.example.net",             # ERROR: targets: the target
      "*.edge.example.net",                   # ERROR: targets: the target
      "::ffff:203.0.113.0/120",               # ERROR: write it as IPv4
      "fe80::1%eth0",                         # ERROR: has a zone
      "",                                     # ERROR: targets: the target
      7,                                      # ERROR: wants strings in its list, found a number
    ]
    on_lost = "blok"                          # ERROR: did you mean `block`?
    grace   = "500ms"                         # ERROR: grace: must be a number with a unit of s, m, h, d or w
    cas     = ["lets encrypt"]                # ERROR: cas: the host name
    uuid    = "11111111-2222-4333-8444-555555555555"  # ERROR: unknown attribute "uuid"
    domain "a.example" {}                     # ERROR: a domain block cannot stand here
  }
  verification { grace = "0s" }               # ERROR: the defaults block has one verification block only # ERROR: the shortest is 1s
}

verification {}                               # ERROR: it stands inside a defaults block

project "acme" {
  name = "Acme Shop"
  verification { require = "all" }            # ERROR: it stands inside a defaults block
  verified = "pending"                        # ERROR: it belongs into domain

  domain "a.example" { verified = "2026-11-28" }           # WARNING: verified: the day was in the future when the file was read, on 2026-11-27 (UTC)
  domain "b.example" { verified = "9999-12-31" }           # WARNING: was in the future
  domain "c.example" { verified = "yes" }                  # ERROR: verified: must be "pending", "lost" or the day of the proof
  domain "d.example" { verified = "" }                     # ERROR: verified: must be
  domain "e.example" { verified = "Pending" }              # ERROR: verified: must be
  domain "f.example" { verified = "2026-02-30" }           # ERROR: verified: must be
  domain "g.example" { verified = "2026-11-24T00:00:00Z" } # ERROR: verified: must be
  domain "h.example" { verified = "2026-1-4" }             # ERROR: verified: must be
  domain "i.example" { verified = true }                   # ERROR: attribute "verified" wants a string, found true
  domain "j.example" { verified = env("DAY") }             # ERROR: env() cannot stand here
  domain "k.example" { verified = pending }                # ERROR: if a string is meant, write it in double quotes
  domain "l.example" { verifed = "pending" }               # ERROR: did you mean `verified`?
}
