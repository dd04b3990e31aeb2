project "Acme Shop" { # ERROR: lower-case letters a-z, digits and hyphens only, as "acme-shop" does
  name = "x"
}
