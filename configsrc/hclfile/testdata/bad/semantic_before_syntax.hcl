project "acme" {
  name   = "Acme"
  statis = "ACTIVE"     # ERROR: did you mean `status`?
  status "ACTIVE"       # ERROR: invalid block definition
  domain "x.example" {}
}
