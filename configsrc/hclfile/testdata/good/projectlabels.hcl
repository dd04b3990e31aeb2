# Labels and certificates in all their spellings.
project "one" {
  name   = "One"
  labels = { shard = "eu-1", plan = "gold" }
  domain "one.example" { certificates = false }
  domain "*.one.example" { certificates = true }
  domain "plain.one.example" { certificates = null }
}

project "many" {
  name = "Many"
  labels = { # for the gateways
    "plan" = "gold", # quoted names are fine
    shard : "eu-1"
    "for"   = "$${x} %%{y}"
    true    = ("parentheses")
    "empty" = ""
    text    = trimsuffix(<<-EOT
      a heredoc
    EOT
    , "\n")
  }
}

project "none" {
  name   = "None"
  labels = {}
}
