webhook "crm" {
  url      = "https://hooks.crm.example/fingerpost"
  secret   = sealed("c2VjcmV0")
  events   = ["project.*", "domain.*", "mail.failed"]
  projects = ["acme"]
}

# A rotation: the new secret comes first.
webhook "cache" {
  url = "http://10.1.2.3:8080/purge"
  secret = [
    env("CACHE_WEBHOOK_SECRET"), # since Monday
    file("secrets/cache"),
    sealed("c2VjcmV0"),
  ]
  active = false
}

webhook "plain" {
  url    = "https://hooks.plain.example:8443/x?y=z"
  secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3" # WARNING: in clear text
  events = ["*"]
  projects = [] # WARNING: is empty
}
