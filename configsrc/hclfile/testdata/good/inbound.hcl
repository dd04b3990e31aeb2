# Outcomes from three providers.
inbound "ses" {
  format = "ses"
  secret = [env("SES_NEW"), env("SES_OLD")]
}

inbound "postmark" {
  format   = "postmark"
  secret   = file("secrets/postmark")
  projects = ["acme"] # one server at Postmark for each project
}

inbound "relay" {
  format   = "json"
  secret   = env("RELAY")
  projects = [
    "acme",
    "shop",
  ]
}
