# Proofs of domains. The day of the fixtures is 2026-11-27.
defaults {
  verification {
    require = "project-keys"
    targets = ["Edge.Example.NET", "bücher.example", "203.0.113.9/24", "203.0.113.7", "::ffff:192.0.2.1", "2001:DB8::/32"]
    on_lost = "block"
    grace   = "3d"
    cas     = ["letsencrypt.org"]
  }
}

project "acme" {
  name = "Acme Shop"
  domain "shop.acme.example" { verified = "2026-11-24" }
  domain "today.acme.example" { verified = "2026-11-27" }
  domain "new.acme.example" {
    verified = "pending"
    primary  = true
  }
  domain "*.acme.example" { verified = "lost" }
  domain "old.acme.example" { verified = null }
  domain "plain.acme.example" {}
}
