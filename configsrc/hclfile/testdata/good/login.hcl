login "company" {
  issuer        = "https://login.acme.example/realms/ops"
  client_id     = "fingerpost"
  client_secret = env("OIDC_CLIENT_SECRET")
  scopes        = ["openid", "email", "profile", "groups"]
  label         = "Acme account"
  ca_file       = "certificates/ca.pem"

  rule {
    claim = "groups"
    value = "ops"
    allow = ["read", "write", "mail", "secrets"]
  }
  # The agency sees and proposes, in one project.
  rule {
    claim    = "email"
    value    = "*@agency.example"
    allow    = ["read", "propose"]
    projects = ["acme"] # and no other
  }
}

# A public client, with a provider in the own network.
login "local" {
  issuer    = "http://10.1.2.3:8080/realms/ops"
  client_id = "fingerpost"
  rule {
    claim    = "realm_access.roles"
    value    = "ops-*"
    allow    = ["read"]
    projects = [] # WARNING: is empty
  }
}

login "plain" { # WARNING: has no rule
  issuer        = "https://login.acme.example"
  client_id     = "fingerpost"
  client_secret = "hunter2hunter2" # WARNING: in clear text
}

login "loose" {
  issuer        = "https://login.microsoftonline.com/common/v2.0" # WARNING: the id of the tenant
  client_id     = "fingerpost"
  client_secret = file("secrets/oidc")
  rule {
    claim = "email"
    value = "*agency.example" # WARNING: write "*@agency.example"
    allow = ["read"]
  }
}
