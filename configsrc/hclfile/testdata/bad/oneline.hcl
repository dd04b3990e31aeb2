project "acme" {
  name = "Acme"
  domain "a.example" { primary = true, active = true }   # ERROR: a block on one line has one attribute
}
