project "acme" {
  name  = "Acme"
  owner = "a b"                    # ERROR: an owner has 1 to 64 of letters, digits, dots, underscores and hyphens
}
key "app" {
  id    = "3xk9tq41"
  hash  = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
  allow = ["create", "read"]       # ERROR: which needs an owner
}
key "empty" {
  id    = "3xk9tq42"
  hash  = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
  allow = ["read"]
  owner = ""                       # ERROR: an owner has 1 to 64 of letters, digits, dots, underscores and hyphens
}
key "list" {
  id    = "3xk9tq43"
  hash  = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
  allow = ["read"]
  owner = ["app"]                  # ERROR: "owner" wants a string
}
