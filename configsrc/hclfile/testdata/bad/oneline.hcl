project "acme" {
  name = "Acme"
  domain "a.example" { primary = true, active = true }   # ERROR: invalid single-argument block definition
}
